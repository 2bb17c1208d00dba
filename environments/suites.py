"""From an environment's name to the environment.

`catch`, `catch:large_rewards`, `memory:<task>`, `atari:<game>`, `dmlab:<level>`,
`control:<domain>/<task>`, `control-pixels:<domain>/<task>`, `rwrl:<domain>/<task>/<level>`,
`gym:<id>` and `gym:<module>:<id>` can be made, and a user's own task,
`<package.module>:<function>`. A word listed here is never taken for a module.

A *suite* is several tasks with the same observations and actions: names joined by commas, as in
`atari:pong,atari:breakout`; `atari57`, the 57 games on which the papers report; or `dmlab30`, the
30 levels of theirs. A task is known by its index in the suite.

Only functions that make or check refuse unknown names; of a suite, the others answer for its first
task.
"""

import difflib
import itertools
from collections.abc import Sequence

from gymnasium.vector import VectorEnv

from environments import import_path, kinds, multitask, scores
from environments.copies import vector
from environments.kinds import Task

_SUITES = {"atari57": scores.ATARI57, "dmlab30": scores.DMLAB30_TRAINING}
_WITHOUT_TASK = ("catch", *_SUITES)


def parse(name: str) -> list[Task]:
    """The tasks of a suite, in order; of one environment, itself."""
    found = []
    for part in itertools.chain(*(_SUITES.get(part, (part,)) for part in name.split(","))):
        word, _, rest = part.partition(":")
        found.append(Task(part, word, rest))
    return found


def tasks(name: str) -> tuple[str, ...]:
    """The names of a suite's tasks, in order; of one environment, its own."""
    return tuple(task.name for task in parse(name))


def kind(name: str) -> str:
    """`Task.kind` of an environment."""
    return parse(name)[0].kind


def frames_per_step(name: str) -> int:
    """Frames for which an action is repeated: 4 on Atari and DeepMind Lab, 1 elsewhere."""
    return kinds.of(parse(name)[0]).frames_per_step


def is_continuous(name: str) -> bool:
    """Returns whether actions are vectors, by the name or by making the environment here."""
    first = parse(name)[0]
    try:
        return kinds.of(first).is_continuous(first)
    except ValueError:
        return False


def images(name: str) -> list[kinds.Shape]:
    """The shapes of the images that are seen, [H, W] or [H, W, C]: alike in all tasks of a suite.

    Args:
      name: of an environment or a suite that `check` accepts. No engine is started for it.
    """
    first = parse(name)[0]
    return kinds.of(first).images(first)


def module_of(name: str) -> str | None:
    """The user's own module that has to be imported to make a task, if there is one."""
    (task,) = parse(name)
    if task.kind == "gym":
        return task.rest.partition(":")[0] if ":" in task.rest else None
    return task.word if task.kind == kinds.OWN else None


def evaluation_task(name: str) -> str:
    """The task on which play of a task is evaluated: itself, or its held-out twin."""
    return scores.HELD_OUT.get(name, name)


def made_singly(name: str) -> bool:
    """`Task.is_made_singly` of an environment."""
    return parse(name)[0].is_made_singly


def make(
    name: str,
    num_envs: int,
    *,
    seed: int,
    full_action_space: bool = True,
    full_rendering: bool = False,
) -> VectorEnv:
    """Makes environments that share a name and differ in their random streams.

    Args:
      name: of one environment, for example `atari:pong`.
      num_envs: N, the number of environments.
      seed: this and the others are as for `make_each`.

    Raises:
      ValueError: as `make_each`.
    """
    if num_envs < 1:
        raise ValueError(f"num_envs must be at least 1, got {num_envs}.")
    return make_each(
        [name] * num_envs,
        seed=seed,
        full_action_space=full_action_space,
        full_rendering=full_rendering,
    )


def make_each(
    names: Sequence[str],
    *,
    seed: int,
    full_action_space: bool = True,
    full_rendering: bool = False,
) -> VectorEnv:
    """Makes one environment per entry: row i plays `names[i]`.

    Every one has a single Box observation, or a dictionary of them, actions that are discrete or a
    bounded float32 vector, float32 rewards, and autoresets on the next step: after an episode's
    end, `step` ignores the action and returns a reward of 0 and the new episode's first
    observation.

    Args:
      names: of one environment each; equal ones stand side by side.
      seed: a non-negative integer. The first `reset()` uses it; the same seed and actions give
        the same stream, bit for bit; a dm_env environment of a user's own knows no seeds, unless
        it is bsuite's.
      full_action_space: for Atari, all 18 actions instead of those the game makes use of; for
        DeepMind Lab, the 15 of R2D2 instead of IMPALA's nine.
      full_rendering: for `control-pixels`, shadows and smooth edges.

    Raises:
      ValueError: a name is unknown or a suite's, equal names are apart, two environments differ in
        their observations or actions, or a number is too small.
    """
    counts = {name: len(list(rows)) for name, rows in itertools.groupby(names)}
    if sum(counts.values()) != len(names) or not names:
        raise ValueError(
            f"At least one name is needed, and equal names side by side, got {list(names)!r}."
        )
    for name in counts:
        check_single(name)
    options = kinds.Options(full_action_space, full_rendering)
    played = [(parse(name)[0], count) for name, count in counts.items()]
    envs = {task.name: kinds.of(task).make(task, count, options) for task, count in played}
    joined = multitask.MultiTaskEnv(envs) if len(envs) > 1 else envs[names[0]]
    return vector.SeededVectorEnv(joined, seed)


def check(name: str) -> None:
    """Refuses a name if no environment of it could be made here.

    Whether a suite's tasks share observations and actions is left to `dm.make_environment_spec`.

    Args:
      name: of an environment or a suite.

    Raises:
      ValueError: a sentence that quotes the name, or the bad one among a suite's, and, if one is
        near, suggests the right one; or a suite has the same task twice.
    """
    check_names(name)
    for task in parse(name):
        _check_here(task)


def check_names(name: str) -> None:
    """Refuses as `check` does, but accepts names that only lack an installed package."""
    names = tasks(name)
    for task in parse(name):
        _check_name(task)
    twice = [task for task in names if names.count(task) > 1]
    if twice:
        raise ValueError(f"A suite's tasks must differ, but {name!r} repeats {twice[0]!r}.")


def check_single(name: str) -> Task:
    """Parses the name of one environment; refuses suites, and what `check` does."""
    check(name)
    first, *more = parse(name)
    if more:
        raise ValueError(f"{name!r} must name one environment, got {1 + len(more)} tasks.")
    return first


def _check_name(task: Task) -> None:
    kind = kinds.of(task)
    known = task.rest in kind.tasks() if kind.knows is None else kind.knows(task)
    if not known or task.word in _SUITES:
        raise ValueError(f"Unknown environment {task.name!r}: {_advice(task)}")


def _check_here(task: Task) -> None:
    """Refuses a task that this machine cannot make."""
    word = task.word
    try:
        kinds.of(task).check(task)
    except ValueError as error:
        missing = error.__cause__
        is_missing = isinstance(missing, ModuleNotFoundError) and missing.name == word
        if is_missing and "." not in word and (_near(word) or not import_path.near(word)):
            # No reading of the colon fits: a misspelt kind of environment, or a module.
            raise ValueError(
                f"Unknown environment {task.name!r}: {_advice(task)} {error}"
            ) from error
        raise


def _near(word: str) -> list[str]:
    """The kind of environment with the name nearest to a word, if any is near."""
    return difflib.get_close_matches(word, [*_WITHOUT_TASK, *kinds.WORDS], n=1)


def _with_kind(text: str) -> list[str]:
    """The full names of the tasks that a text without a kind names, or else is nearest to."""
    whole = {f"{word}:{task}": task for word in kinds.WORDS for task in kinds.named(word).tasks()}
    meant = [name for name, task in whole.items() if task.lower() == text.lower()]
    near = difflib.get_close_matches(text, set(whole.values()), n=1, cutoff=0.75)
    return meant or [name for name, task in whole.items() if task in near]


def _advice(task: Task) -> str:
    """Names the nearest right name, or else the forms that a name can take."""
    if (advice := kinds.of(task).advice) is not None:
        return advice(task)
    for near in _near(task.word):
        of_kind = kinds.named(near).tasks() if near in kinds.WORDS else []
        for near_task in difflib.get_close_matches(task.rest, of_kind, n=1):
            return f"did you mean {near}:{near_task}?"
        if near in _WITHOUT_TASK:
            return f"did you mean {near}?"
    if not task.rest and (named := _with_kind(task.word)):
        return f"did you mean {' or '.join(named)}?"
    forms = (kinds.named(word).form for word in (*kinds.WORDS, kinds.OWN))
    return f"expected {', '.join(forms)}, several of these joined by commas, atari57 or dmlab30."
