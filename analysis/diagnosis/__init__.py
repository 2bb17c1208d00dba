"""What launch.diagnose measures: stale states, parameter lag, memory."""
