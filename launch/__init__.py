"""Launchpad programs: train, and the nodes they are wired from."""
