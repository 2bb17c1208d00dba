"""Replay: the one layer every learner shares."""
