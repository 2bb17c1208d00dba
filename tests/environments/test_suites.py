"""Names: the right ones, the wrong ones and what is said about them."""

import re

import pytest
from gymnasium.vector import VectorEnv

from environments import atari, catch, gym, memory, suites

BAD_NAMES = {
    "ctach": "did you mean catch?",
    "atri:pong": "did you mean atari:pong?",
    "mem:recall": "did you mean memory:recall?",
    "Gym:CartPole-v1": "did you mean gym:CartPole-v1?",
    "atari:pongg": "did you mean atari:pong?",
    "atari:mspacman": "did you mean atari:ms_pacman?",
    "atari:combat": "Unknown environment",
    "memory:recal": "did you mean memory:recall?",
    "gym:CartPol-v1": "did you mean gym:CartPole-v1?",
    "gym:CartPole-v9": "did you mean gym:CartPole-v1?",
    "catch:foo": "did you mean catch?",
    "catch:": "did you mean catch?",
    "ctach:foo": "did you mean catch?",
    "atri:pongg": "did you mean atari:pong?",
    "atari": "expected catch[:large_rewards], memory:<",
    "atari:": "expected catch[:large_rewards], memory:<",
    "memory": "expected catch[:large_rewards], memory:<",
    "nonsense": "expected catch[:large_rewards], memory:<",
    "gym:nonsense": "expected catch[:large_rewards], memory:<",
    "": "expected catch[:large_rewards], memory:<",
    "catch:large_reward": "did you mean catch:large_rewards?",
    "atari56": "did you mean atari57?",
    "atari57:pong": "did you mean atari57?",
    "dmlab:rooms_watermaze": "not built yet",
    "dmlab30": "not built yet",
    "control:cartpole/swingup": "not built yet",
    "control-pixels:cartpole/swingup": "not built yet",
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
        suites.make_environment_spec(name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("catch", catch.Catch),
        ("memory:recall", memory.Recall),
        ("memory:cartpole", memory.PositionCartPole),
        ("atari:pong", atari.Atari),
        ("gym:CartPole-v1", gym.Gym),
    ],
)
def test_good_names(name: str, expected: type[VectorEnv]) -> None:
    suites.check(name)
    env = suites.make(name, 2, seed=0)
    assert isinstance(env.env, expected)  # type: ignore[attr-defined]
    assert env.num_envs == 2


def test_check_makes_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in [(catch, "Catch"), (atari, "Atari"), (memory, "TASKS")]:
        substitute = dict.fromkeys(memory.TASKS) if name == "TASKS" else None
        monkeypatch.setattr(module, name, substitute)
    for good in ("catch", "memory:cartpole", "atari:pong"):
        suites.check(good)


def test_full_action_space_reaches_atari_and_its_spec() -> None:
    assert suites.make_environment_spec("atari:pong").actions.num_values == 18
    minimal = suites.make_environment_spec("atari:pong", full_action_space=False)
    assert minimal.actions.num_values == 6


@pytest.mark.parametrize("num_envs", [0, -3])
def test_no_environments_are_refused(num_envs: int) -> None:
    with pytest.raises(ValueError, match=f"at least 1, but it is {num_envs}"):
        suites.make("catch", num_envs, seed=0)


@pytest.mark.parametrize("name", ["catch", "memory:cartpole", "atari:pong", "gym:CartPole-v1"])
def test_a_negative_seed_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="must not be negative, but it is -1"):
        suites.make(name, 2, seed=-1)
