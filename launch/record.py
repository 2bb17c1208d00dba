"""Records episodes to learn from: python -m launch.record --run_dir=runs/pong --folder=demos/pong

Who plays is a run's policy, a function (--policy=my_package.bots:play, an observation -> an
action) or a person (--person); --minari takes what a file of Minari's holds. --folder is then for
launch.train --demonstrations.
"""

import os

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # before pygame is imported

import dataclasses
import functools
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from absl import flags

from environments import import_path, screens, suites
from launch import command_line, opening, playing_flags, trial
from run_folder.settings import Settings, SettingsError

_FOLDER = flags.DEFINE(command_line.FolderParser(), "folder", None, "Where the episodes go.")
_ENV = flags.DEFINE_string("env", None, "What is played; of a run with several tasks, which.")
_POLICY = flags.DEFINE_string("policy", None, "A function: observation -> action, or with env.")
_PERSON = flags.DEFINE_boolean("person", False, "You play, in a window.")
_KEYS = flags.DEFINE_string("keys", "", "Of a person: left=0,right=1,space=2.")
_MINARI = flags.DEFINE_string("minari", None, "A main_data.hdf5 of Minari's.")
_EPISODES = command_line.define_whole("episodes", 20, "In the folder, at the end.", 1, 1_000_000)
_FULL = flags.DEFINE_boolean("full_action_space", False, "As of launch.train, without a run.")
_OF = {"run_dir": playing_flags.NAMES[1:], "person": ("keys",)}  # flags of one who plays alone
_SECTIONS = {
    "Who plays: a run's policy, a function, a person, or nobody": (
        *playing_flags.NAMES,
        *("policy", "person", "keys", "minari"),
    ),
    "What, and where to": ("env", "folder", "episodes", "seed", "full_action_space"),
}


@command_line.ending()
def main(_: Sequence[str]) -> None:
    if not _FOLDER.value:
        raise SettingsError("--folder must be given.")
    given = [
        flag.name
        for flag in (command_line.RUN_DIR, _POLICY, _PERSON, _MINARI)
        if flag.value not in (None, False)
    ]
    if len(given) != 1:
        names = "--run_dir, --policy, --person or --minari"
        raise SettingsError(f"One of {names} must say who plays, got {given or 'none'}.")
    for who, own in _OF.items():
        for name in own if who != given[0] else ():
            if flags.FLAGS[name].present:
                raise SettingsError(f"--{name} is for --{who}, got --{given[0]}: leave it out.")
    if flags.FLAGS["full_action_space"].present and given[0] == "run_dir":
        raise SettingsError("--full_action_space is as the run has it: leave it out.")
    _record(given[0], pathlib.Path(_FOLDER.value))


def _record(who: str, folder: pathlib.Path) -> None:
    """Has an environment played, or a file read, until the folder holds what was asked for."""
    player = None
    if who == "run_dir":
        player = playing_flags.player(opening.run())
        task, full = _task_of(player.run), player.run.full_action_space
    else:
        task, full = _ENV.value or "", bool(_FULL.value)
        if not task:
            raise SettingsError(f"--env must say what is played, beside --{who}.")
        trial.try_each(task, None)
    try:
        suites.check_single(task)
    except ValueError as error:
        raise SettingsError(f"--env={task}: {error}") from None
    recording = command_line.later("analysis.playing.recording")
    spec = command_line.later("environments.dm").make_environment_spec(task, full_action_space=full)
    held = len(recording.recordings.files(folder))
    seed = (command_line.SEED.value or 0) + held  # a recording that goes on plays other episodes
    play: Callable[[int], Iterator[Any]]
    if player is not None:
        played = dataclasses.replace(player.played, seed=seed)
        player = dataclasses.replace(player, played=played)
        play = functools.partial(recording.of_run, player, task)
    elif who == "minari":
        read = command_line.later("analysis.playing.minari").read
        path = pathlib.Path(os.path.expanduser(str(_MINARI.value)))
        play = functools.partial(read, path, task, spec, held)
    elif who == "person":
        try:
            screen = screens.make(task, seed=seed, full_action_space=full)
        except ValueError as error:  # nothing can be drawn here
            raise SettingsError(f"--person: {error}") from None
        choose = command_line.later("analysis.playing.person").chooser(screen, _KEYS.value)
        play = functools.partial(recording.of_function, choose, screen.env, task)
    else:
        env = suites.make(task, 1, seed=seed, full_action_space=full)
        play = functools.partial(recording.of_function, _function(), env, task)
    recording.record(folder, task, spec, _EPISODES.value, play, command_line.say)


def _task_of(run: Settings) -> str:
    """The task of a run that is recorded."""
    task = _ENV.value or run.tasks[0]
    if task not in run.tasks or (len(run.tasks) > 1 and not _ENV.value):
        raise SettingsError(f"--env must be one of {', '.join(run.tasks)}, got {_ENV.value!r}.")
    return task


def _function() -> Callable[..., Any]:
    """The function that --policy names."""
    try:
        found = import_path.load(
            str(_POLICY.value), what="a policy", example="my_package.bots:play"
        )
    except ValueError as error:
        raise SettingsError(f"--policy={_POLICY.value}: {error}") from None
    if not callable(found):
        raise SettingsError(f"--policy={_POLICY.value} must be a function, got {found!r}.")
    return cast(Callable[..., Any], found)


if __name__ == "__main__":
    command_line.run(main, _SECTIONS)
