"""PopArt-IMPALA and MultiHead-IMPALA on two cores: IMPALA's values, with the paper's batches."""

from agents.entry import Kind, Values
from agents.impala.presets import ATARI, DMLAB, IMAGE, SHARED, SMALL

__all__ = ["LOCAL", "SHARED"]

LOCAL: dict[Kind, Values] = dict(atari=ATARI, dmlab=DMLAB, image=IMAGE, small=SMALL)
