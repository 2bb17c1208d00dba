"""What stale states and parameters cost R2D2."""
