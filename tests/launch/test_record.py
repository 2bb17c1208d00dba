"""Recording: functions, runs, files of Minari's and people; what is cut goes on."""

import importlib
import os
import pathlib
from typing import Any

import h5py
import numpy as np
import pygame
import pytest
import tree

from environments import screens
from environments.dm import make_environment_spec
from run_folder import recordings
from run_folder.recordings import Episode
from tests.commands import Commands
from tests.launch import bots
from tests.run_folder import saved_runs

BOT, ODD = "--policy=tests.launch.bots:catcher", "tests.launch.bots:Odd"


def recorded(commands: Commands, *argv: str) -> str:
    """What `launch.record` prints."""
    outcome = commands.run("launch.record", *argv)
    assert outcome.code == 0, outcome.err
    return outcome.out


def episodes(folder: pathlib.Path, task: str) -> list[Episode]:
    spec = make_environment_spec(task)
    return [recordings.read(path, spec) for path in recordings.files(folder)]


def test_a_function_is_recorded_step_by_step(tmp_path: pathlib.Path, commands: Commands) -> None:
    folder = tmp_path / "demos"
    argv = (BOT, "--env=catch", f"--folder={folder}", "--episodes=7", "--seed=3")
    said = recorded(commands, *argv)
    assert "7 episodes of catch (0 were there), 63 steps, mean return 1.00" in said
    found = episodes(folder, "catch")
    for each in found:
        assert each.terminated.tolist() == [False] * 8 + [True]
        assert not each.truncated.any()
        assert each.actions.tolist() == [bots.catcher(seen) for seen in each.observations[:-1]]
        # The ball falls a row a step, and the paddle goes where the action before says.
        assert each.observations[:-1, :-1].any(axis=2).argmax(axis=1).tolist() == list(range(9))
        paddle = each.observations[:, -1].argmax(axis=1)
        moved = np.clip(paddle[:-2] + each.actions[:-1] - 1, 0, 4)
        np.testing.assert_array_equal(moved, paddle[1:-1])
    assert len({each.observations[0].argmax() for each in found}) > 1
    recorded(commands, *argv[:-2], "--episodes=9")
    more = episodes(folder, "catch")
    assert len(more) == 9
    for old, new in zip(found, more, strict=False):
        tree.map_structure(np.testing.assert_array_equal, old, new)


def test_a_recording_that_is_killed_goes_on(tmp_path: pathlib.Path, commands: Commands) -> None:
    """At the first step, within an episode, and after several."""
    folder, count = tmp_path / "demos", tmp_path / "steps"
    count.write_text("0")
    flags = ("--policy=tests.launch.bots:mortal", "--env=catch", f"--folder={folder}")
    held = []
    for most in (1, 24, 58, 10**6):
        os.environ[bots.KILLED] = f"{count}:{most}"
        try:
            ended = commands.run("launch.record", *flags, "--episodes=9")
        finally:
            del os.environ[bots.KILLED]
        assert ended.code == (-9 if most < 10**6 else 0), ended
        held.append(len(recordings.files(folder)))
    assert held == [0, 2, 5, 9]
    assert {each.rewards.sum() for each in episodes(folder, "catch")} == {1.0}


@pytest.mark.parametrize("agent", ["r2d2", "impala"])
def test_a_runs_policy_is_recorded_as_it_is_evaluated(
    tmp_path: pathlib.Path, commands: Commands, agent: str
) -> None:
    run, folder = tmp_path / "run", tmp_path / "demos"
    saved_runs.save(run, agent, "catch,catch:large_rewards", steps=(3,))
    argv = (f"--run_dir={run}", f"--folder={folder}", "--env=catch:large_rewards", "--episodes=19")
    recorded(commands, *argv)
    found = episodes(folder, "catch:large_rewards")
    assert [len(each.rewards) for each in found] == [9] * 19
    assert {abs(each.rewards[-1]) for each in found} == {1000.0}


def test_minaris_episodes_are_those_of_the_environment(
    tmp_path: pathlib.Path, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a data set holds as the environment gave it, and what is recorded while it is played."""
    played, taken, path = tmp_path / "played", tmp_path / "taken", tmp_path / "main_data.hdf5"
    argv = (f"--env={ODD}", "--episodes=3")
    policy = "--policy=tests.launch.bots:knowing"
    recorded(commands, policy, *argv, f"--folder={played}")
    with h5py.File(path, "w") as file:
        for number in (0, 1, 2, 10):
            _write(file.create_group(f"episode_{number}"))
    recorded(commands, f"--minari={path}", *argv, f"--folder={taken}")
    more = (f"--env={ODD}", "--episodes=10", f"--folder={taken}")
    monkeypatch.setenv("HOME", str(tmp_path))
    recorded(commands, f"--minari=~/{path.name}", *more)
    one, another = episodes(played, ODD), episodes(taken, ODD)
    assert (len(one), len(another)) == (3, 4)
    for each in another:
        tree.map_structure(np.testing.assert_array_equal, each, one[0])
    assert one[0].actions.tolist() == [0, 2, 1, 0, 2, 1]


def _write(group: Any) -> None:
    """An episode of `bots.Odd`, as Minari lays it out."""
    env = bots.Odd()
    seen, rows = [env.reset()[0]], []
    for _ in range(6):
        action = 5 + bots.knowing(None, env=env)
        observation, *outcome = env.step(action)
        seen.append(observation)
        rows.append((action, *outcome[:3]))
    for name, values in zip(
        ("actions", "rewards", "terminations", "truncations"), zip(*rows, strict=True), strict=True
    ):
        group[name] = np.array(values)
    place = group.create_group("observations").create_group("place")
    place["_index_0"] = np.array([each["place"][0] for each in seen])
    place["_index_1"] = np.array([each["place"][1] for each in seen])
    group["observations"].create_dataset(
        "text", data=[each["text"] for each in seen], dtype=h5py.string_dtype()
    )


def test_a_function_that_chooses_what_is_not_legal_is_told(
    tmp_path: pathlib.Path, commands: Commands
) -> None:
    argv = ("--env=tests.masked:Shown", "--policy=tests.launch.bots:first")
    outcome = commands.run("launch.record", *argv, f"--folder={tmp_path / 'demos'}")
    assert outcome.code == 2
    assert "The policy must give a legal action, got 0: action_mask is [0, " in outcome.err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ((BOT, "--epsilon=0.1"), "--epsilon is for --run_dir, got --policy: leave it out."),
        (("--person", "--checkpoint=best"), "--checkpoint is for --run_dir, got --person"),
        ((BOT, "--keys=a=0"), "--keys is for --person, got --policy"),
        (("--run_dir=r", "--full_action_space"), "--full_action_space is as the run has it"),
    ],
)
def test_flags_that_would_change_nothing_are_refused(
    commands: Commands, argv: tuple[str, ...], said: str
) -> None:
    outcome = commands.run("launch.record", *argv, "--env=catch", "--folder=none")
    assert outcome.code != 0
    assert said in outcome.err


def test_a_person_plays_by_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    person = importlib.import_module("analysis.playing.person")
    screen = screens.make("catch", seed=0)
    screen.env.reset()
    choose = person.chooser(screen, "left=0,right=2")
    for key, action in ((pygame.K_UP, None), (pygame.K_RIGHT, 2), (pygame.K_LEFT, 0)):
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=key))
        if action is not None:  # the first key means nothing, and is not waited on
            assert choose(None) == action
    masked = {"action_mask": np.array([1, 0, 0], np.uint8)}
    for key in (pygame.K_RIGHT, pygame.K_LEFT):  # the first is not legal
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=key))
    assert choose(masked) == 0
    idle = person.chooser(screen, "none=1,left=0")
    assert idle(None) == 1
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    with pytest.raises(KeyboardInterrupt):
        choose(None)
    for keys in ("", "left", "lef=0", "left=7", "left=x"):
        with pytest.raises(ValueError, match="must name keys and actions, as left=0,right=1, got"):
            person.chooser(screen, keys)
    for name in ("SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="--person needs a display, and this process has none"):
        person.chooser(screen, "left=0")
    pygame.quit()


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ([BOT, "--env=catch"], "--folder must be given."),
        (["--env=catch", "--folder=d"], "--person or --minari must say who plays, got none."),
        ([BOT, "--person", "--env=catch", "--folder=d"], "got ['policy', 'person']."),
        ([BOT, "--folder=d"], "--env must say what is played, beside --policy."),
        ([BOT, "--env=catc", "--folder=d"], "did you mean catch?"),
        ([BOT, "--env=catch,catch:large_rewards", "--folder=d"], "must name one environment"),
        (
            ["--policy=tests.launch.bots:catchr", "--env=catch", "--folder=d"],
            "has no 'catchr', did you mean 'catcher'?",
        ),
        (["--policy=catcher", "--env=catch", "--folder=d"], "--policy=catcher: Expected a policy"),
        (
            ["--policy=tests.launch.bots:KILLED", "--env=catch", "--folder=d"],
            "must be a function, got 'KILLED_AFTER'",
        ),
        (
            ["--policy=tests.launch.bots:knowing", "--env=catch", "--folder=d"],
            "--policy takes env, but catch has no gymnasium.Env of its own.",
        ),
        (
            ["--policy=tests.launch.bots:lost", "--env=catch", "--folder=d"],
            "The policy must give an action of Discrete(3), got 3.",
        ),
        (["--minari=nowhere.hdf5", f"--env={ODD}", "--folder=d"], "--minari=nowhere.hdf5 cannot"),
        (["--minari=x", "--env=catch", "--folder=d"], "--minari is for gym:<id> and environments"),
        (
            ["--person", "--env=tests.launch.bots:Unlit", "--folder=d"],
            "--person: 'tests.launch.bots:Unlit' cannot draw itself here: OSError: no lamp",
        ),
    ],
)
def test_what_cannot_be_recorded_is_refused(
    argv: list[str], sentence: str, tmp_path: pathlib.Path, commands: Commands
) -> None:
    folder = tmp_path / "d"
    typed = [f"--folder={folder}" if part == "--folder=d" else part for part in argv]
    outcome = commands.run("launch.record", *typed)
    assert (outcome.code, outcome.err.count("\n")) == (2, 1), outcome.err
    assert sentence in outcome.err
    assert not folder.exists() or not list(folder.glob("*.npz"))
