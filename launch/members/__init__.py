"""Trains the members of a population by turns, each a run of `launch.train`."""
