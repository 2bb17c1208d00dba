"""All that is known of a run's folder: its settings, logs and checkpoints."""

import recurrent_replay

recurrent_replay.check()
