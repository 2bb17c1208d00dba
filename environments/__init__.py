"""Environments: anything that can be stepped, as a gymnasium VectorEnv with next-step autoreset."""

import recurrent_replay

recurrent_replay.check()
