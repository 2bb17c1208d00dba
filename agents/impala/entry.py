"""IMPALA as it can be named."""

from agents.entry import Entry, imported
from agents.impala import horizon, presets
from agents.impala.columns import COLUMNS
from agents.impala.config import ATARI, CONTROL, CONTROL_IMAGE, DMLAB
from agents.impala.evolved import evolved

RIVALS = dict.fromkeys(("pytorch", "pytorch_tuned", "pytorch_compiled"), "pytorch:impala")

ENTRIES = {
    "impala": Entry(
        ATARI,
        imported("agents.impala.agent:make"),
        dmlab=DMLAB,
        control=CONTROL,
        control_image=CONTROL_IMAGE,
        of_env=horizon.of_env,
        local=presets.LOCAL,
        shared=presets.SHARED,
        all_dmlab_actions=False,
        columns=COLUMNS,
        evolved=evolved,
        rivals=RIVALS,
    )
}
