"""What makes the results that docs/ prints."""
