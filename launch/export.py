"""Writes a policy that plays without this project: python -m launch.export --run_dir=runs/pong

It is a SavedModel of TensorFlow: docs/export.md shows a loop that serves it. With --as_run it is a
small run folder instead, for this project's own commands.
"""

import os
import pathlib
from collections.abc import Sequence

from absl import flags, logging

from launch import command_line, opening, playing_flags
from run_folder.settings import SettingsError

_EXPORT_DIR = flags.DEFINE(
    command_line.FolderParser(),
    "export_dir",
    None,
    "A new folder for the model; by default one below the run's exports/.",
)
_AS_RUN = flags.DEFINE_boolean(
    "as_run",
    False,
    "Write a run folder that has the parameters and what is known of them alone: it plays, is "
    "exported and goes on as the run would.",
)
_OF_PLAYING = ("epsilon", "memory_steps", "seed")
_SECTIONS = {"Whose policy": playing_flags.NAMES, "Where and how": ("export_dir", "as_run", "seed")}


@command_line.ending()
def main(_: Sequence[str]) -> None:
    asked = _EXPORT_DIR.value
    if asked == "" or (asked and pathlib.Path(asked).exists()):
        raise SettingsError(f"--export_dir must name a new folder, got {asked!r}.")
    if _AS_RUN.value and asked is None:
        raise SettingsError("--as_run writes a run folder: name it with --export_dir.")
    for name in _OF_PLAYING if _AS_RUN.value else ():
        if flags.FLAGS[name].present:
            raise SettingsError(f"--{name} is for who plays what --as_run writes: leave it out.")
    player = playing_flags.player(opening.run())
    writer = "analysis.playing.small_run" if _AS_RUN.value else "analysis.playing.saved_model"
    tf = command_line.later("tensorflow")
    tf.get_logger().setLevel("ERROR")  # it would tell of assets, of which there are none
    logging.set_verbosity(logging.ERROR)  # and of a fingerprint
    written = command_line.later(writer)
    folder = written.write(player, pathlib.Path(asked) if asked else None)
    print(f"{player.agent.name}, update {player.played.learner_steps:,}: {folder}")


if __name__ == "__main__":
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # a run may need the GPU
    command_line.run(main, _SECTIONS)
