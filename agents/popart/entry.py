"""PopArt-IMPALA, and MultiHead-IMPALA, which does not normalise, as they can be named."""

from typing import Any

from agents.entry import Band, Entry, imported
from agents.impala import entry as impala
from agents.popart.config import ATARI, DMLAB, MULTIHEAD_ATARI, MULTIHEAD_DMLAB, Config

_BAND = Band(
    title="PopArt",
    mean="mu",
    deviation="sigma",
    letters=("μ", "σ"),
    note="The mean μ of each task's value targets, in its rewards' own units; what lies within one "
    "standard deviation σ is shaded.",
)


def _entry(atari: Config, dmlab: Config, **arguments: Any) -> Entry:
    return Entry(
        atari,
        imported("agents.popart.builder:make"),
        dmlab=dmlab,
        of_env=impala.horizon,
        # On two cores: IMPALA's values, with the paper's batches.
        local=dict(atari=impala.ATARI, dmlab=impala.DMLAB, image=impala.IMAGE, small=impala.SMALL),
        shared=impala.SHARED,
        num_tasks_field="num_tasks",
        columns=impala.COLUMNS,
        evolved=impala.evolved,
        rivals=impala.RIVALS,
        dmlab_members=8,  # Hessel et al. 2018, Table 8
        **arguments,
    )


ENTRIES = {
    "multihead_impala": _entry(MULTIHEAD_ATARI, MULTIHEAD_DMLAB),
    "popart": _entry(ATARI, DMLAB, bands=(_BAND,)),
}
