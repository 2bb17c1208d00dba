"""Reads run folders, and starts nothing."""

import recurrent_replay

recurrent_replay.check()
