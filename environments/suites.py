"""From an environment's name to the environment.

`catch`, `catch:large_rewards`, `memory:<task>`, `atari:<game>`, `dmlab:<level>`,
`control:<domain>/<task>`, `control-pixels:<domain>/<task>`, `rwrl:<domain>/<task>/<level>`,
`gym:<id>` and `gym:<module>:<id>` can be made, and a user's own task,
`<package.module>:<function>`. The words before the first colon that are listed here are never
modules.

A *suite* is several tasks with the same observations and actions: names joined by commas, as in
`atari:pong,atari:breakout`; `atari57`, the 57 games on which the papers report; or `dmlab30`, the
30 levels of theirs. A task is known by its index in the suite.
"""

import contextlib
import difflib
import itertools
from collections.abc import Callable, Sequence

from gymnasium import spaces
from gymnasium.vector import VectorEnv

from environments import (
    atari,
    catch,
    control,
    control_tasks,
    dmlab,
    dmlab_process,
    gym,
    import_path,
    memory,
    multitask,
    scores,
    seeding,
)

_TASKS: dict[str, Callable[[], list[str]]] = {
    "catch": lambda: sorted(catch.TASKS),
    "memory": lambda: sorted(memory.TASKS),
    "atari": atari.games,
    "dmlab": dmlab.levels,
    "control": lambda: list(control_tasks.CONTROL),
    "control-pixels": lambda: list(control_tasks.CONTROL),
    "rwrl": lambda: list(control_tasks.RWRL),
    "gym": gym.ids,
}
_SUITES = {"atari57": scores.ATARI57, "dmlab30": scores.DMLAB30_TRAINING}
_WITHOUT_TASK = ("catch", *_SUITES)
_FRAMES_PER_STEP = {"atari": atari.FRAMES_PER_STEP, "dmlab": dmlab_process.FRAMES_PER_STEP}


def tasks(name: str) -> tuple[str, ...]:
    """The names of a suite's tasks in order; of one environment, its own name.

    Args:
      name: for example `atari:pong`, `atari:pong,atari:breakout` or `atari57`; not checked.
    """
    parts = (_SUITES.get(part, (part,)) for part in name.split(","))
    return tuple(itertools.chain.from_iterable(parts))


def kind(name: str) -> str:
    """`atari`, `dmlab`, `gym`, ...: of a suite, that of its first task; `own` for a user's.

    Args:
      name: of an environment or a suite; not checked.
    """
    word = tasks(name)[0].partition(":")[0]
    return word if word in _TASKS else "own"


def frames_per_step(name: str) -> int:
    """Frames for which an action is repeated: 4 on Atari and DeepMind Lab, 1 elsewhere.

    Args:
      name: of an environment or a suite; not checked.
    """
    return _FRAMES_PER_STEP.get(kind(name), 1)


def module_of(task: str) -> str | None:
    """The module that has to be imported to make a task: a user's own; None of those listed here.

    Args:
      task: that `check_names` accepts.
    """
    word, _, rest = task.partition(":")
    if word == "gym":
        return rest.partition(":")[0] if ":" in rest else None
    return word if kind(task) == "own" else None


def evaluation_task(name: str) -> str:
    """The task on which play of a task is evaluated: itself, or its held-out twin.

    Args:
      name: of one environment; not checked.
    """
    return scores.HELD_OUT.get(name, name)


def make(
    name: str,
    num_envs: int,
    *,
    seed: int,
    full_action_space: bool = True,
    full_rendering: bool = False,
) -> VectorEnv:
    """Makes environments that share a name and differ in their random streams.

    Every one has a single Box observation, or a dictionary of them, actions that are discrete or a
    bounded float32 vector, float32 rewards, and autoresets on the next step: after an episode's
    end, `step` ignores the action and returns a reward of 0 and the new episode's first
    observation.

    Args:
      name: of one environment, for example `atari:pong`; `make_each` makes suites.
      num_envs: N, the number of environments.
      seed: a non-negative integer. The first `reset()` uses it; the same seed and actions give
        the same stream, bit for bit; a dm_env environment of a user's own knows no seeds.
      full_action_space: for Atari, all 18 actions instead of those the game makes use of; for
        DeepMind Lab, the 15 of R2D2 instead of IMPALA's nine.
      full_rendering: for `control-pixels`, shadows and smooth edges.

    Raises:
      ValueError: the name is unknown or a suite's, or a number is too small.
    """
    _check_single(name)
    if num_envs < 1:
        raise ValueError(f"num_envs must be at least 1, got {num_envs}.")
    return seeding.SeededVectorEnv(_make(name, num_envs, full_action_space, full_rendering), seed)


def make_each(
    names: Sequence[str],
    *,
    seed: int,
    full_action_space: bool = True,
    full_rendering: bool = False,
) -> VectorEnv:
    """Makes one environment per entry: row i plays `names[i]`.

    Args:
      names: of one environment each; equal ones stand side by side. With a single name among
        them the result is that of `make`.
      seed: as for `make`.
      full_action_space: as for `make`.
      full_rendering: as for `make`.

    Raises:
      ValueError: a name is unknown or a suite's, equal names are apart, or two environments
        differ in their observations or actions.
    """
    counts = {name: len(list(rows)) for name, rows in itertools.groupby(names)}
    if sum(counts.values()) != len(names) or not names:
        raise ValueError(
            f"At least one name is needed, and equal names side by side, got {list(names)!r}."
        )
    if len(counts) == 1:
        return make(
            names[0],
            len(names),
            seed=seed,
            full_action_space=full_action_space,
            full_rendering=full_rendering,
        )
    for name in counts:
        _check_single(name)
    how = (full_action_space, full_rendering)
    envs = {name: _make(name, count, *how) for name, count in counts.items()}
    return seeding.SeededVectorEnv(multitask.MultiTaskEnv(envs), seed)


def _make(name: str, num_envs: int, full_action_space: bool, full_rendering: bool) -> VectorEnv:
    word, _, task = name.partition(":")
    if word == "catch":
        return catch.TASKS[task](num_envs) if task else catch.Catch(num_envs)
    if word == "memory":
        return memory.TASKS[task].make(num_envs)
    if word == "atari":
        return atari.Atari(task, num_envs, full_action_space=full_action_space)
    if word == "dmlab":
        return dmlab.DMLab(task, num_envs, full_action_space=full_action_space)
    if word in control_tasks.TASKS:
        return control.make(name, num_envs, full_rendering=full_rendering)
    return gym.make(name, num_envs)


def check(name: str) -> None:
    """Refuses a name of which an environment could not be made.

    Whether a suite's tasks share observations and actions is left to `make_environment_spec`.

    Args:
      name: of an environment or a suite.

    Raises:
      ValueError: a sentence that quotes the name, or the bad one among a suite's, and, if one is
        near, suggests the right one; or a suite has the same task twice.
    """
    check_names(name)
    for task in tasks(name):
        _check_here(task)


def check_names(name: str) -> None:
    """As `check`, but accepts what could be made where everything that it needs is installed."""
    names = tasks(name)
    for task in names:
        _check_name(task)
    twice = [task for task in names if names.count(task) > 1]
    if twice:
        raise ValueError(f"A suite's tasks must differ, but {name!r} repeats {twice[0]!r}.")


def _check_single(name: str) -> None:
    check(name)
    if len(tasks(name)) > 1:
        raise ValueError(f"{name!r} must name one environment, got {len(tasks(name))} tasks.")


def made_singly(name: str) -> bool:
    """Whether copies of an environment are made one at a time, by `environments.gym`.

    Args:
      name: of one environment that `check_names` accepts.
    """
    return kind(name) in ("gym", "own")


def _check_name(name: str) -> None:
    word, _, task = name.partition(":")
    if word in _TASKS:
        known = task in _TASKS[word]() or (word == "gym" and gym.may_register(task))
    else:
        known = word not in _SUITES and import_path.is_import_path(name)
    if not known and name != "catch":
        raise ValueError(f"Unknown environment {name!r}: {_advice(word, task)}")


def _check_here(name: str) -> None:
    """Refuses what this machine cannot make."""
    word, _, task = name.partition(":")
    if word == "dmlab":
        dmlab.check(task)
    if word in control_tasks.TASKS:
        control.check(name)
    if not made_singly(name):
        return
    try:
        gym.describe(name)
    except ValueError as error:
        missing = error.__cause__
        is_missing = isinstance(missing, ModuleNotFoundError) and missing.name == word
        if is_missing and "." not in word and (_near(word) or not import_path.near(word)):
            # No reading of the colon fits: a misspelt kind of environment, or a module.
            raise ValueError(
                f"Unknown environment {name!r}: {_advice(word, task)} {error}"
            ) from error
        raise


def _near(word: str) -> list[str]:
    """The kind of environment whose name is most like a word, if one is like it."""
    return difflib.get_close_matches(word, [*_WITHOUT_TASK, *_TASKS], n=1)


def _with_kind(task: str) -> list[str]:
    """The whole names of tasks that a text is, or else is most like, without their kind."""
    whole = {f"{kind}:{known}": known for kind, tasks in _TASKS.items() for known in tasks()}
    meant = [name for name, known in whole.items() if known.lower() == task.lower()]
    return meant or [
        name
        for near in difflib.get_close_matches(task, set(whole.values()), n=1, cutoff=0.75)
        for name, known in whole.items()
        if known == near
    ]


def _advice(word: str, task: str) -> str:
    """Names the nearest right name, or else the forms that a name can take."""
    if word in control_tasks.TASKS:
        return control_tasks.advice(word, task)
    for near in _near(word):
        of_kind = _TASKS[near]() if near in _TASKS else []
        for near_task in difflib.get_close_matches(task, of_kind, n=1):
            return f"did you mean {near}:{near_task}?"
        if near in _WITHOUT_TASK:
            return f"did you mean {near}?"
    if not task and (named := _with_kind(word)):
        return f"did you mean {' or '.join(named)}?"
    return (
        f"expected catch[:{'|'.join(catch.TASKS)}], memory:<{'|'.join(memory.TASKS)}>, "
        "atari:<game in snake_case>, dmlab:<level>, control:<domain>/<task>, "
        "control-pixels:<domain>/<task>, rwrl:<domain>/<task>/<level>, gym:<id known to "
        "gymnasium>, gym:<module>:<id>, <package.module>:<function>, several of these joined by "
        "commas, atari57 or dmlab30."
    )


def observation_space(name: str) -> spaces.Space:
    """What one environment shows; of a suite, what its first task does, as all others must.

    Args:
      name: of an environment or a suite that `check` accepts. No engine is started for it.
    """
    first = tasks(name)[0]
    if made_singly(first):
        return gym.describe(first).observations
    with contextlib.closing(_make(first, 1, full_action_space=True, full_rendering=False)) as env:
        return env.single_observation_space
