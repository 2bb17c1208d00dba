"""How many frames the papers train for, by the end of which the learning rate has fallen."""

from agents.entry import Values
from environments import suites

_GAME = 200_000_000  # Espeholt et al. 2018, Section 5.3.2: of one game, and of each of 57 (F.1)
_LEVEL = 1_000_000_000  # of one level: the authors' code
_CONTROL = 30_000_000  # where actions are vectors: Zahavy et al. 2020, Table 3
_DMLAB30 = 10_000_000_000  # of 30 levels: the code, and Hessel et al. 2018, Figures 6 and 7


def of_env(env: str) -> Values:
    """The horizon of what is played, and what it is counted in.

    Each of several games has as many frames as one alone. Of DMLab-30 the papers train all levels
    with those of ten: fewer have a billion each. What is acted in by vectors has the frames of
    STAC's paper. For other environments nothing was published, and each has those of a game.

    Args:
      env: name of an environment or suite.
    """
    num_tasks = len(suites.tasks(env))
    if suites.kind(env) == "dmlab":
        frames = min(num_tasks * _LEVEL, _DMLAB30)
    else:
        frames = num_tasks * (_CONTROL if suites.is_continuous(env) else _GAME)
    return dict(annealing_frames=frames, frames_per_step=suites.frames_per_step(env))
