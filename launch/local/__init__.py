"""A run on one machine."""
