"""PopArt-IMPALA and MultiHead-IMPALA on two cores: IMPALA's values, with the paper's batches."""

from agents.impala.presets import ATARI, DMLAB, IMAGE, SHARED, SMALL
from agents.presets import Presets

PRESETS = Presets(local=dict(atari=ATARI, dmlab=DMLAB, image=IMAGE, small=SMALL), shared=SHARED)
