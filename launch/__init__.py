"""Launchpad programs: train, and the nodes they are wired from."""

import recurrent_replay

recurrent_replay.check()
