"""Names of environments and suites, and the errors about wrong ones."""

import re
import subprocess
import sys

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import VectorEnv

from environments import atari, scores, small_tasks, suites
from environments.copies import made_singly
from environments.dm import make_environment_spec

BAD_NAMES = {
    "ctach": "did you mean catch?",
    "atri:pong": "did you mean atari:pong?",
    "atari:pongg": "did you mean atari:pong?",
    "atari:combat": "Unknown environment",
    "gym:CartPol-v1": "did you mean gym:CartPole-v1?",
    "catch:foo": "did you mean catch?",
    "json:make": "but <module 'json' from",
    "nonsense:make": "expected catch[:large_rewards], memory:<",
    "json.no_such_module:make": "got 'json.no_such_module:make', but there is no module 'json.no",
    "no_such.module:make": "but there is no module 'no_such' on PYTHONPATH.",
    "ctach:foo": "did you mean catch? Expected an environment such as my_package.tasks:make",
    "atari": "expected catch[:large_rewards], memory:<",
    "nonsense": "expected catch[:large_rewards], memory:<",
    "": "expected catch[:large_rewards], memory:<",
    "catch:large_reward": "did you mean catch:large_rewards?",
    "CartPole-v1": "did you mean gym:CartPole-v1?",
    "pong": "did you mean atari:pong?",
    "walker/walk": "did you mean control:walker/walk or control-pixels:walker/walk?",
    "atari56": "did you mean atari57?",
    "dmlab:rooms_watermazes": "did you mean dmlab:rooms_watermaze?",
    "dmlab:contributed/dmlab30/rooms_watermaze": "did you mean dmlab:rooms_watermaze?",
    "dmlab:rooms_collect_good_objects": "did you mean dmlab:rooms_collect_good_objects_t",
    "dmlb:seekavoid_arena_1": "did you mean dmlab:seekavoid_arena_01?",
    "dmlab30:rooms_watermaze": "did you mean dmlab30?",
    "control": "expected control:<domain>/<task>, one of acrobot/swingup, acrobot/swingup_spar",
    "rwrl": "expected rwrl:<domain>/<task>/<level>, one of cartpole/swingup/none, ",
    "control:cartpole/swing": "did you mean control:cartpole/swingup?",
    "control:walker": "did you mean control:walker/run, control:walker/stand or control:walker/wa",
    "control:wlaker/run": "did you mean control:walker/run?",
    "control:lqr/lqr_2_1": "expected control:<domain>/<task>, one of",
    "control-pixels:cheeta/run": "did you mean control-pixels:cheetah/run?",
    "contrl:cartpole/swingup": "did you mean control:cartpole/swingup?",
    "rwrl:walker/walk": "did you mean rwrl:walker/walk/none, rwrl:walker/walk/easy, rwrl:walker/wa",
    "rwrl:walker/walk/medum": "did you mean rwrl:walker/walk/medium?",
    "rwrl:walker/run/easy": "did you mean rwrl:walker/walk/none",
}


@pytest.mark.parametrize(("name", "message"), BAD_NAMES.items())
def test_bad_names_are_refused_in_one_sentence(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as refusal:
        suites.check(name)
    assert repr(name) in str(refusal.value)
    assert "\n" not in str(refusal.value)
    with pytest.raises(ValueError, match=re.escape(message)):
        suites.make(name, 1, seed=0)
    with pytest.raises(ValueError, match=re.escape(message)):
        make_environment_spec(name)


@pytest.mark.parametrize(
    "name",
    [
        "no_such_package.tasks:make",
        "no_such_module:make",
        "gym:no_such_module:Task-v0",
        "catch,no.such.module:Task",
        "atri:pong",  # a module's name, as far as one can tell without an import
    ],
)
def test_a_recorded_name_of_a_users_own_need_not_be_there(name: str) -> None:
    suites.check_names(name)
    with pytest.raises(ValueError, match="o module"):
        suites.check(name)


@pytest.mark.parametrize(
    "name", ["my_package.tasks", "my-package:make", "a..b:c", "a:b:c", "a:1", "gym:a-b:c", "gym:a:"]
)
def test_what_no_import_path_can_be_is_refused_without_an_import(name: str) -> None:
    with pytest.raises(ValueError, match=r"Unknown environment .* <package\.module>:<function>"):
        suites.check_names(name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("catch", small_tasks.Catch),
        ("catch:large_rewards", small_tasks.LargeRewards),
        ("memory:recall", small_tasks.Recall),
        ("memory:cartpole", small_tasks.PositionCartPole),
        ("atari:pong", atari.Atari),
        ("gym:CartPole-v1", made_singly.Copies),
    ],
)
def test_good_names(name: str, expected: type[VectorEnv]) -> None:
    suites.check(name)
    env = suites.make(name, 2, seed=0)
    assert isinstance(env.env, expected)  # type: ignore[attr-defined]
    assert env.num_envs == 2


def test_check_makes_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atari, "Atari", None)
    monkeypatch.setattr(small_tasks, "CATCH", {})
    monkeypatch.setattr(small_tasks, "MEMORY", dict.fromkeys(small_tasks.MEMORY))
    for good in ("catch", "memory:cartpole", "atari:pong"):
        suites.check(good)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("catch", ("catch",)),
        ("atari:pong,catch,atari:qbert", ("atari:pong", "catch", "atari:qbert")),
        ("catch,atari57", ("catch", *scores.ATARI57)),
        ("dmlab30", scores.DMLAB30_TRAINING),
    ],
)
def test_tasks(name: str, expected: tuple[str, ...]) -> None:
    assert suites.tasks(name) == expected


@pytest.mark.parametrize(
    ("name", "kind", "frames", "is_made_singly"),
    [
        ("atari57", "atari", 4, False),
        ("dmlab:any", "dmlab", 4, False),
        ("dmlab30,catch", "dmlab", 4, False),
        ("memory:recall", "memory", 1, False),
        ("control:walker/walk", "control", 1, False),
        ("gym:CartPole-v1", "gym", 1, True),
        ("my_package.tasks:make", "own", 1, True),
    ],
)
def test_kinds(name: str, kind: str, frames: int, is_made_singly: bool) -> None:
    """Atari and DMLab repeat an action."""
    assert suites.kind(name) == kind
    assert suites.frames_per_step(name) == frames
    assert suites.parse(name)[0].is_made_singly == is_made_singly


def test_dmlab30_is_trained_on_one_of_each_pair_and_evaluated_on_the_other() -> None:
    trained = suites.tasks("dmlab30")
    assert len(set(trained)) == 30
    assert not any(name.endswith("_test") for name in trained)
    assert tuple(map(suites.evaluation_task, trained)) == scores.DMLAB30
    assert tuple(map(suites.evaluation_task, scores.DMLAB30)) == scores.DMLAB30


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("catch,ctach,atari:pongg", "Unknown environment 'ctach': did you mean catch?"),
        ("atari:pong,atari:pongg", "Unknown environment 'atari:pongg': did you mean atari:pong?"),
        ("catch,", "Unknown environment '': expected"),
        ("atari:pong, atari:qbert", "' atari:qbert': did you mean atari:qbert?"),
        ("catch,control:cartpole/swing", "did you mean control:cartpole/swingup?"),
        ("catch,atari:pong,catch", "'catch,atari:pong,catch' repeats 'catch'"),
        ("atari57,atari:pong", "repeats 'atari:pong'"),
    ],
)
def test_bad_suites_are_refused(name: str, message: str) -> None:
    for refusing in (suites.check, make_environment_spec):
        with pytest.raises(ValueError, match=re.escape(message)):
            refusing(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("catch,atari:pong", "while 'atari:pong' has Box(0, 255, (84, 84), uint8) and Discrete(6)"),
        ("atari:pong,atari:breakout", "All Atari games share the full set of 18 actions."),
        ("atari:pong,atari:krull,catch", "while 'atari:krull' has"),
        ("memory:recall,gym:CartPole-v1", "'gym:CartPole-v1' has Box([-4.8 -inf"),
    ],
)
def test_suites_whose_tasks_differ_are_refused(name: str, message: str) -> None:
    suites.check(name)
    with pytest.raises(ValueError, match=re.escape(message)) as refusal:
        make_environment_spec(name, full_action_space=False)
    # The advice is for games alone.
    assert ("18 actions" in str(refusal.value)) == (name.count("atari:") == 2)
    with pytest.raises(ValueError, match=re.escape(message)):
        suites.make_each(suites.tasks(name), seed=0, full_action_space=False)


HEAVY = {"tensorflow", "acme", "reverb", "launchpad", "matplotlib", "sonnet", "mujoco"}


def test_a_name_is_checked_without_what_takes_seconds_to_import() -> None:
    program = f"""
import sys
from environments import suites
try:
    suites.check_names("control:walker/run,rwrl:walker/walk/easy,atari:pnog")
except ValueError as error:
    print(error, *sys.modules.keys() & {HEAVY})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "Unknown environment 'atari:pnog': did you mean atari:pong?\n"


def test_make_each_plays_the_names_in_their_order() -> None:
    env = suites.make_each(["catch"] * 2 + ["catch:large_rewards"] * 3, seed=0)
    env.reset()
    for _ in range(9):
        _, rewards, *_ = env.step(np.zeros(5, np.int64))
    np.testing.assert_array_equal(np.abs(rewards), [1, 1, 1000, 1000, 1000])


def test_make_each_hands_the_action_space_on() -> None:
    names = ["atari:demon_attack", "atari:space_invaders"]
    for full, count in ((True, 18), (False, 6)):
        env = suites.make_each(names, seed=0, full_action_space=full)
        assert env.single_action_space == spaces.Discrete(count)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "At least one name is needed"),
        (["catch", "catch:large_rewards", "catch"], "side by side, got ['catch', "),
        (["catch", "atari57"], "'atari57' must name one environment, got 57 tasks."),
        (
            ["catch,catch:large_rewards"],
            "'catch,catch:large_rewards' must name one environment, got 2 t",
        ),
        (["catch", "ctach"], "did you mean catch?"),
    ],
)
def test_make_each_refuses(names: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        suites.make_each(names, seed=0)


@pytest.mark.parametrize(
    ("name", "num_envs", "seed", "message"),
    [
        ("atari57", 57, 0, "'atari57' must name one environment, got 57 tasks"),
        ("catch", 0, 0, "at least 1, got 0"),
        ("memory:cartpole", 2, -1, "must not be negative, got -1"),
        ("gym:CartPole-v1", 2, -1, "must not be negative, got -1"),
    ],
)
def test_make_refuses(name: str, num_envs: int, seed: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        suites.make(name, num_envs, seed=seed)
