"""Trains runs that learn from each other, or a sweep.

python -m launch.population --agent=popart --env=atari57 --members=24 --run_dir=runs/population
"""

import contextlib
import dataclasses
import pathlib
import shlex
import sys
from collections.abc import Callable, Sequence

from absl import flags

from agents import fields
from launch import command_line, train, trial
from population import settings
from population.folder import PopulationFolder, is_population, name_of
from population.settings import Asked, Population
from recurrent_replay import command
from run_folder import layout, run_lock
from run_folder.settings import SettingsError

_RULE = {
    name: command_line.define(name, field)
    for name, field in fields.declared(Population).items()
    if field.default is not dataclasses.MISSING
}
_SWEEP = flags.DEFINE_multi_string(
    "sweep",
    None,
    "<agent>.<field>=log:5e-5:1e-2, =uniform:10:100, =choice:0.1,0.01 or =grid:0.1,0.01: where "
    "first values come from. Once for each field; the papers' by default.",
)
_MEMBER = command_line.define_whole(
    "member", None, "Train this one alone; other hosts train the others: docs/populations.md."
)
_SECTIONS: command_line.Sections = {
    "What learns what, and where": (
        *("agent", "env", "run_dir", "resume", "preset", command_line.HYPERPARAMETER, "seed"),
    ),
    "The population": ("members", "sweep", "evolve"),
    "How it evolves": (
        *("burn_in_frames", "ready_episodes", "margin"),
        *("mutation_probability", "mutation_factor"),
    ),
    "How its members run; all else that launch.train takes is for each of them": (
        *("concurrent", "turn_steps", "member", "max_actor_steps", "max_learner_steps"),
    ),
}
_LIMITS = ("max_actor_steps", "max_learner_steps")
_NEVER = ("job", "resume_step", "resume_without_replay")  # of launch.train


@command_line.ending()
def main(_: Sequence[str]) -> None:
    """Checks names and values first, which takes no TensorFlow and so no time."""
    rule = {name: flag.value for name, flag in _RULE.items() if flag.value is not None}
    try:
        values, overrides = train.asked()
        typed = Asked(values, overrides, rule, _SWEEP.value or [])
        _check_place(values["run_dir"] or "")
        member = _MEMBER.value
        _try_each(typed, is_begun=_how(typed) is not settings.new)
        population = _how(typed)(typed)  # which another host may have begun meanwhile
        if member is not None and not 0 <= member < population.members:
            raise SettingsError(
                f"--member must be from 0 to {population.members - 1}, got {member}."
            )
        sys.exit(_run(population, pathlib.Path(values["run_dir"]), member))
    finally:
        run_lock.release()


def _how(typed: Asked) -> Callable[[Asked], Population]:
    """What makes the population: as it is resumed, joined or new."""
    if train.RESUME.value:
        return settings.resumed
    joins = _MEMBER.value is not None and typed.values["run_dir"]
    return settings.joined if joins and is_population(typed.folder.path) else settings.new


def _try_each(typed: Asked, *, is_begun: bool) -> None:
    """Tries what is played in a child; raises SettingsError for a file that cannot be read."""
    env, seconds = typed.values["env"], typed.values["hang_seconds"]
    if is_begun and typed.values["run_dir"]:
        env, recorded = settings.played(typed.folder.path)
        seconds = seconds or recorded
    if env:
        trial.try_each(env, seconds)


def _check_place(run_dir: str) -> None:
    """Raises SettingsError for flags and places that a run takes and a population does not."""
    for name in _NEVER:
        if flags.FLAGS[name].present and flags.FLAGS[name].value is not False:
            raise SettingsError(f"--{name} is for one run: a population takes none.")
    for name in settings.ENDS:
        if flags.FLAGS[name].present:
            raise SettingsError(
                f"--{name} is for one run: end a population's members, who take turns, by "
                f"{' or '.join(f'--{limit}' for limit in _LIMITS)}."
            )
    if train.finds_actors():
        raise SettingsError(
            "--num_actors=auto is for one run: a population's members share this machine, so give "
            "each a number, as --num_actors=32."
        )
    if (
        layout.is_bucket(run_dir)
        or command_line.of_launchpad(sys.argv)
        or any(flags.FLAGS[name].present for name in flags.FLAGS if name.startswith("gcp_"))
    ):
        raise SettingsError(
            "A population runs on this machine, or with --member on hosts that share its folder; "
            "on Google Cloud it cannot run."
        )


def _run(population: Population, path: pathlib.Path, member: int | None) -> int:
    """Trains it, or one member; returns the exit code."""
    loops = command_line.later("launch.members.loop")
    views = command_line.later("launch.members.view")
    folder = PopulationFolder(path.resolve())
    mine = range(population.members) if member is None else range(member, member + 1)
    if not is_population(path) or settings.load(path) != population:
        command_line.later("launch.acceptance").check(population, folder, mine)
    settings.make_folder(folder)
    _lock(population, folder, member)
    settings.record(folder, population)
    title = f"{population.members} x {population.agent} on {population.env}, {path}"
    drawn = ", ".join(f"{name}={text}" for name, text in population.sweep.items())
    command_line.say(f"Training {title}; drawn: {drawn}.")
    with views.View(title) as view:
        loop = loops.Loop(population, folder, mine, view)
        well = loop.run()
    with contextlib.suppress(OSError):
        _describe(loop.scores(), path, _raised(population) if loop.has_finished() else "")
    return 0 if well else 1


def _lock(population: Population, folder: PopulationFolder, member: int | None) -> None:
    """Locks a member, or all of them, for this process until `run_lock.release`.

    Raises:
      SettingsError: another process trains one of them.
    """
    mine = range(population.members) if member is None else (member,)
    for path in (folder.path, *map(folder.host, mine)):
        if run_lock.is_held(path):
            raise SettingsError(
                f"{path} is being trained by another process: end that first, with Ctrl-C where it "
                "was started."
            )
    own = folder.path if member is None else folder.host(member)
    own.mkdir(parents=True, exist_ok=True)
    run_lock.take(own)


def _raised(population: Population) -> str:
    """The flags without which a population that has finished would end at once when resumed."""
    limits = {name: population.flags.get(name) for name in _LIMITS}
    return "".join(f" --{name}={2 * limit}" for name, limit in limits.items() if limit)


def _describe(scores: dict[int, float], path: pathlib.Path, further: str) -> None:
    """Prints the best member and the commands to type next; `further` are flags of resuming."""
    found = {member: score for member, score in scores.items() if score == score}
    shown = shlex.quote(str(path))
    if found:
        best = max(found, key=lambda member: found[member])
        print(f"Best: member {name_of(best)}, with {found[best]:.4g}.")
        print(
            f"Evaluate: {command('evaluate')} --run_dir={shown}/members/{name_of(best)} "
            "--episodes=30"
        )
    print(f"Resume:   {command('population')} --run_dir={shown} --resume{further}")
    print(f"Report:   {command('report')} --run_dir={shown}")


if __name__ == "__main__":
    command_line.run(main, _SECTIONS)
