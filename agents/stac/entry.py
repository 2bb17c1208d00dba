"""STAC, and STACX, which has auxiliary heads, as they can be named."""

from agents.entry import Entry, imported
from agents.impala import horizon
from agents.stac import presets
from agents.stac.columns import COLUMNS, GROUP
from agents.stac.config import (
    ATARI,
    CONTROL,
    CONTROL_IMAGE,
    DMLAB,
    STACX_ATARI,
    STACX_CONTROL,
    STACX_CONTROL_IMAGE,
    STACX_DMLAB,
    Config,
)


def _entry(atari: Config, dmlab: Config, control: Config, control_image: Config) -> Entry:
    return Entry(
        atari,
        imported("agents.stac.agent:make"),
        dmlab=dmlab,
        control=control,
        control_image=control_image,
        of_env=horizon.of_env,
        local=presets.LOCAL,
        shared=presets.SHARED,
        all_dmlab_actions=False,
        columns=COLUMNS,
        groups=(GROUP,),
        rivals={"impala": "ours:impala"},
        networks=0,
        single_task="its metaparameters are tuned to one task, and several would share them",
    )


ENTRIES = {
    "stac": _entry(ATARI, DMLAB, CONTROL, CONTROL_IMAGE),
    "stacx": _entry(STACX_ATARI, STACX_DMLAB, STACX_CONTROL, STACX_CONTROL_IMAGE),
}
