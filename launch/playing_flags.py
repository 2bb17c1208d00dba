"""The flags of commands that take what a run has learned: which agent, which checkpoint, how."""

import pathlib

from absl import flags

from agents.limited_memory import MOST_MEMORY_STEPS
from analysis.playing import evaluation
from analysis.playing.evaluation import Player
from launch import command_line
from run_folder import settings
from run_folder.settings import SettingsError

_CHECKPOINT = flags.DEFINE_string(
    "checkpoint", "latest", "Whose parameters play: latest, or the update N of a kept one."
)
_EPSILON = flags.DEFINE_float("epsilon", None, "Probability of a random action; R2D2 only.")
_MEMORY_STEPS = flags.DEFINE_integer(
    "memory_steps",
    None,
    "The agent remembers its last k inputs only; all by default.",
    upper_bound=MOST_MEMORY_STEPS,
)
NAMES = ("run_dir", "agent", "checkpoint", "epsilon", "memory_steps")


def player() -> Player:
    """Who the command line asks for.

    Raises:
      SettingsError, CheckpointError: there is no such agent or checkpoint, or it cannot play so.
    """
    if not command_line.RUN_DIR.value:
        raise SettingsError("--run_dir must be given.")
    run = settings.load(pathlib.Path(command_line.RUN_DIR.value))
    return evaluation.load(
        run,
        command_line.AGENT.value or run.agents[0],
        checkpoint=_checkpoint(_CHECKPOINT.value),
        epsilon=_EPSILON.value,
        memory_steps=_MEMORY_STEPS.value,
        seed=command_line.SEED.value or 0,
    )


def _checkpoint(text: str) -> int | None:
    if text == "latest":
        return None
    if not (text.isdecimal() and len(text) < 20):  # with which int64 ends
        raise SettingsError(
            f"--checkpoint must be latest or the number of an update, got {text!r}."
        )
    return int(text)
