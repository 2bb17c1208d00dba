"""Agents: the contract, the recurrent actor, the learner shell, networks."""

import recurrent_replay

recurrent_replay.check()
