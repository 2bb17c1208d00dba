"""Measures a run as R2D2's paper does: python -m launch.diagnose --run_dir=runs/pong

  discrepancy  Q-values where training must find the recurrent state of a sequence: from zero or
               from the stored state, after burn-ins of several lengths (Figure 1). Actors play.
  lag          the age, in updates, of the parameters whose experience is replayed (Figure 6).
  memory       return, greedy actions and Q-values with a memory of k inputs only (Figure 5).

Each is printed, and written as a table and a picture into the run's folder diagnostics/.
"""

from collections.abc import Sequence
from typing import Any

from absl import flags
from rich.console import Console

from agents.requirements import MOST_MEMORY_STEPS
from launch import command_line, opening
from run_folder.settings import SettingsError

ANALYSES = ("discrepancy", "lag", "memory")

_LONGEST_BURN_IN = 10_000  # that is unrolled at once

_ANALYSES = flags.DEFINE_list(
    "analyses", None, "Which, with commas; by default all that the agent has something for."
)
_BURN_INS = flags.DEFINE_list(
    "burn_ins", None, "discrepancy: steps; by default 0, 1/4 and 1/2 of an item's, and the run's."
)
_SEQUENCES = command_line.define_whole(
    "sequences", 256, "discrepancy: the most, of each task and lag.", 1, 1_000_000
)
_SAMPLES = command_line.define_whole(
    "replay_samples", 2_000, "lag: the most items drawn from the saved replay.", 1, 100_000_000
)
_MEMORIES = flags.DEFINE_list(
    "memories", ["1", "2", "4", "8", "16", "32", "64"], "memory: the ks, and then no limit."
)
_EPISODES = command_line.define_whole(
    "memory_episodes", 10, "memory: of each k, played at once.", 1, 10_000
)
_SECTIONS = {
    "What is measured": ("run_dir", "trust", "agent", "analyses", "seed"),
    "How": ("burn_ins", "sequences", "replay_samples", "memories", "memory_episodes"),
}


def _run_and_what() -> dict[str, Any]:
    """The fields of `analysis.diagnosis.Wanted`, from the command line.

    Raises:
      SettingsError: when it makes no sense.
    """
    for analysis in _ANALYSES.value or ():
        if analysis not in ANALYSES:
            raise SettingsError(
                f"--analyses names {analysis!r}, but there are {', '.join(ANALYSES)}."
            )
    burn_ins = _whole_numbers(_BURN_INS, 0, _LONGEST_BURN_IN)
    memories = _whole_numbers(_MEMORIES, 1, MOST_MEMORY_STEPS)
    run = opening.run()
    return dict(
        run=run,
        agent=command_line.AGENT.value or run.agents[0],
        analyses=_ANALYSES.value or (),
        burn_ins=burn_ins,
        sequences=_SEQUENCES.value,
        replay_samples=_SAMPLES.value,
        memories=memories,
        memory_episodes=_EPISODES.value,
        seed=command_line.SEED.value or 0,
    )


def _whole_numbers(flag: flags.FlagHolder, least: int, most: int) -> list[int]:
    """A flag's numbers in order, each once; nothing where the flag was not given."""
    texts = [str(text) for text in flag.value or ()]
    digits = len(str(most))
    if not all(t.isdecimal() and len(t) <= digits and least <= int(t) <= most for t in texts):
        raise SettingsError(
            f"--{flag.name} must be whole numbers from {least} to {most:,} with commas between "
            f"them, got {','.join(texts)!r}."
        )
    return sorted({int(text) for text in texts})


@command_line.ending()
def main(_: Sequence[str]) -> None:
    wanted = _run_and_what()
    diagnosis = command_line.later("analysis.diagnosis")
    diagnosis.diagnose(diagnosis.Wanted(**wanted), Console())


if __name__ == "__main__":
    command_line.run(main, _SECTIONS)
