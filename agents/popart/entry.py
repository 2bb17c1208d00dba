"""PopArt-IMPALA, and MultiHead-IMPALA, which does not normalise, as they can be named."""

from typing import Any

from agents.entry import Entry, imported
from agents.impala import horizon
from agents.impala.entry import RIVALS
from agents.impala.evolved import evolved
from agents.popart import presets
from agents.popart.columns import BAND, COLUMNS
from agents.popart.config import ATARI, DMLAB, MULTIHEAD_ATARI, MULTIHEAD_DMLAB, Config


def _entry(atari: Config, dmlab: Config, **arguments: Any) -> Entry:
    return Entry(
        atari,
        imported("agents.popart.agent:make"),
        dmlab=dmlab,
        of_env=horizon.of_env,
        local=presets.LOCAL,
        shared=presets.SHARED,
        num_tasks_field="num_tasks",
        columns=COLUMNS,
        evolved=evolved,
        rivals=RIVALS,
        dmlab_members=8,  # Hessel et al. 2018, Table 8
        **arguments,
    )


ENTRIES = {
    "multihead_impala": _entry(MULTIHEAD_ATARI, MULTIHEAD_DMLAB),
    "popart": _entry(ATARI, DMLAB, bands=(BAND,)),
}
