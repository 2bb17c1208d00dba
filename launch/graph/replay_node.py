"""What runs inside a replay server's process."""

import reverb

from launch.graph import heartbeats, process
from launch.graph.rejoining import Origin
from run_folder import building, layout, mirrors, replay_files, saver
from run_folder.layout import CHECKPOINTS
from run_folder.settings import Settings


def make_tables(settings: Settings, shard: int) -> list[reverb.Table]:
    """The tables of a replay node, in whose process this is called."""
    process.enter(settings.run_dir, f"replay {shard}")
    heartbeats.stay_busy()  # Reverb's own threads work; the main one only waits for the end
    return building.tables_of_shard(settings, shard)


def replay_checkpointer(
    settings: Settings, origin: Origin, shard: int
) -> reverb.checkpointers.CheckpointerBase:
    """Where a replay node writes its checkpoints, and the one it begins with, if there is one."""
    mirror = mirrors.of(settings.run_dir)
    replay = origin.of_replay(settings)
    if replay is not None:
        mirror.fetch(f"{CHECKPOINTS}/{replay}/{shard}/*")
    checkpointer = saver.replay_checkpointer(settings.folder.checkpoints, replay, shard)
    if layout.is_bucket(settings.run_dir):
        staging = f"{CHECKPOINTS}/staging/{shard}"
        replay_files.keep_shipping(mirror.path / staging, f"{mirror.root}/{staging}")
    return checkpointer
