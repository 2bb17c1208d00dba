"""Plays what a run has learned, measures it and films it."""
