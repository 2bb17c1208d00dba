"""Plays what a run has learned: python -m launch.evaluate --run_dir=runs/pong --episodes=30"""

import os

# Before pygame is imported, by whatever follows.
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pygame draws, but opens no window

from collections.abc import Sequence

from absl import flags

from launch import command_line, opening, playing_flags

_EPISODES = command_line.define_whole(
    "episodes",
    None,
    "Of each task; by default what the papers play: 200 on Atari, 500 on DMLab; 100 elsewhere.",
    1,
    1_000_000,
)
_VIDEO = flags.DEFINE_boolean("video", False, "Film an episode of each task, into videos/.")
_SECTIONS = {
    "Who plays": playing_flags.NAMES,
    "What": ("episodes", "video", "seed"),
}


@command_line.ending()
def main(_: Sequence[str]) -> None:
    player = playing_flags.player(opening.run())
    session = command_line.later("analysis.playing.session")
    if _VIDEO.value:
        session.check_film(player)
    session.play_all(player, _EPISODES.value, command_line.say)
    if _VIDEO.value:
        session.film_all(player, command_line.say)


if __name__ == "__main__":
    command_line.run(main, _SECTIONS)
