"""The flags of commands that take what a run has learned: which agent, which checkpoint, how."""

from typing import TYPE_CHECKING

from absl import flags

from agents.requirements import MOST_MEMORY_STEPS
from launch import command_line
from run_folder.settings import Settings, SettingsError

if TYPE_CHECKING:
    from analysis.playing.evaluation import Player

_CHECKPOINT = flags.DEFINE_string(
    "checkpoint", "latest", "Whose parameters play: latest, best, or the update N of a kept one."
)
_EPSILON = flags.DEFINE_float("epsilon", None, "Probability of a random action; R2D2 only.")
_MEMORY_STEPS = command_line.define_whole(
    "memory_steps",
    None,
    "The agent remembers its last k inputs only; all by default.",
    most=MOST_MEMORY_STEPS,
)
NAMES = ("run_dir", "trust", "agent", "checkpoint", "epsilon", "memory_steps")


def player(run: Settings) -> "Player":
    """Who of a run the command line asks for.

    Raises:
      SettingsError: there is no such agent or checkpoint, or it cannot play so.
    """
    checkpoint = _checkpoint(_CHECKPOINT.value)
    found: Player = command_line.later("analysis.playing.evaluation").load(
        run,
        command_line.AGENT.value,
        checkpoint=checkpoint,
        epsilon=_EPSILON.value,
        memory_steps=_MEMORY_STEPS.value,
        seed=command_line.SEED.value or 0,
    )
    return found


def _checkpoint(text: str) -> int | str | None:
    if text in ("latest", "best"):
        return None if text == "latest" else text
    if not (text.isdecimal() and len(text) < 20):  # with which int64 ends
        raise SettingsError(
            f"--checkpoint must be latest, best or the number of an update, got {text!r}."
        )
    return int(text)
