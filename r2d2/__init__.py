"""Recurrent Replay Distributed DQN (Kapturowski et al., ICLR 2019)."""

import recurrent_replay

recurrent_replay.check()
