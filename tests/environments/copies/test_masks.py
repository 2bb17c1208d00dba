"""Masks of legal actions: in observations and infos, as agents see them, and what is refused."""

import re

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from environments import gym, screens, suites
from environments.copies.dead_simulators import CannotPlayError
from environments.copies.masks import MaskFromInfo
from environments.copies.vector import has_mask
from environments.dm import make_environment_spec
from tests.masked import NUM_ACTIONS, InInfo, Shown

BOTH = pytest.mark.parametrize("name", ["tests.masked:Shown", "tests.masked:InInfo"])


@BOTH
def test_either_convention_gives_a_mask_beside_what_is_shown(name: str) -> None:
    spec = make_environment_spec(name)
    assert sorted(spec.observations) == ["action_mask", "observation"]
    mask = spec.observations["action_mask"]
    assert (mask.shape, mask.dtype) == ((NUM_ACTIONS,), np.uint8)
    assert spec.observations["observation"].shape == (NUM_ACTIONS + 1,)
    env, twin = suites.make(name, 2, seed=1), suites.make("tests.masked:Shown", 2, seed=1)
    observations, _ = env.reset()
    same, _ = twin.reset()
    ends, terminals = np.zeros(2, int), 0
    for _ in range(60):
        np.testing.assert_array_equal(observations["observation"], same["observation"])
        acts = ends < 1
        masks, shown = observations["action_mask"], same["action_mask"]
        np.testing.assert_array_equal(masks[acts], shown[acts])
        # A terminal observation's: no action is legal, or `info` has no mask.
        terminal = masks[~shown.any(axis=-1)]
        assert (terminal == name.endswith("InInfo")).all()
        terminals += len(terminal)
        assert masks.dtype == np.uint8
        actions = np.argmax(masks, axis=-1)
        observations, _, terminated, truncated, infos = env.step(actions)
        same, *_ = twin.step(actions)
        assert not np.any(infos.get("lost", 0))
        ends = (terminated | truncated).astype(int)
    assert terminals > 3


def test_several_parts_stay_as_they_are_without_a_mask() -> None:
    space = suites.make("tests.masked:Parts", 1, seed=0).single_observation_space
    assert isinstance(space, spaces.Dict)
    assert sorted(space) == ["action_mask", "image", "more/action_mask", "text"]
    assert space["action_mask"] == spaces.Box(0, 1, (NUM_ACTIONS,), np.uint8)


def test_taxi_says_which_moves_do_something() -> None:
    env = suites.make("gym:Taxi-v4", 1, seed=0)
    observations, _ = env.reset()
    assert observations["observation"].shape == (1, 500)
    assert 0 < observations["action_mask"].sum() < 6
    taxi = gymnasium.make("Taxi-v4")
    _, info = taxi.reset(seed=3)
    seen, _ = MaskFromInfo(gymnasium.make("Taxi-v4")).reset(seed=3)
    np.testing.assert_array_equal(seen["action_mask"], info["action_mask"])


REFUSED = {
    "Pairs": "must take one discrete action where 'action_mask' says which are legal, got Multi",
    "PairsInInfo": "must take one discrete action where 'action_mask' says which are legal, got M",
    "Vector": "must take one discrete action where 'action_mask' says which are legal, got Box(",
    "Short": "must have a number for each of its actions, [7], as 'action_mask', got Box(0, 1, (6",
    "Words": "must have a number for each of its actions, [6], as 'action_mask', got Text(",
    "Halves": "'action_mask' must be zeros and ones, got [0.5 0.5 0.5 0.5 0.5 0.5]",
    "Alone": "must have observations made of arrays, choices and texts, got Dict()",
    "StuckAtOnce": "'action_mask' must show a legal action where the episode goes on, got zeros fo",
    "NotAtFirst": "step()'s info has an action_mask, so reset()'s must have one too",
    "Once": "there is no 'action_mask' of an observation, got {'observation': array(",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_mask_that_cannot_be_used_is_refused_in_a_sentence(name: str) -> None:
    with pytest.raises(ValueError, match=re.escape(REFUSED[name])) as told:
        suites.check(f"tests.masked:{name}")
    assert f"'tests.masked:{name}'" in str(told.value)
    assert "\n" not in str(told.value)


def test_an_episode_that_goes_on_without_a_legal_action_is_lost() -> None:
    env = suites.make("tests.masked:Stuck", 1, seed=0)
    observations, infos = env.reset()
    lost = 0
    with pytest.raises(CannotPlayError, match=r"environments of 'tests\.masked:Stuck'") as told:  # noqa: PT012
        for _ in range(200):
            assert observations["action_mask"].any()
            actions = np.argmax(observations["action_mask"], axis=-1)
            observations, _, terminated, _, infos = env.step(actions)
            lost += int(np.sum(infos.get("lost", 0)))
            assert not terminated.any()
    assert lost == 19
    assert "zeros for all 6, after step 2 of an episode" in str(told.value)


def test_a_suite_needs_a_mask_in_every_task_or_in_none() -> None:
    spec = make_environment_spec("tests.masked:Shown,tests.masked:InInfo")
    assert has_mask(spec.observations)
    env = suites.make_each(["tests.masked:Shown", "tests.masked:InInfo"], seed=0)
    observations, _ = env.reset()
    for _ in range(50):
        observations, *_, infos = env.step(np.argmax(observations["action_mask"], axis=-1))
        assert not infos["lost"].any()
    with pytest.raises(ValueError, match="must have the same observations and actions"):
        make_environment_spec("tests.masked:Shown,gym:CartPole-v1")


def test_what_is_drawn_is_not_the_mask() -> None:
    screen = screens.make("tests.masked:Shown", seed=0)
    observation, _ = screen.env.reset()
    (picture,) = screen.env.render() or ()
    np.testing.assert_array_equal(picture, screens.drawn(observation["observation"][0]))


def test_an_environment_without_one_is_made_reset_and_stepped_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []

    class Plain(Shown):
        observation_space = spaces.Box(0, 1, (NUM_ACTIONS + 1,), np.float32)

        def reset(self, **how: object) -> tuple[np.ndarray, dict[str, object]]:
            calls.append("reset")
            return np.zeros(NUM_ACTIONS + 1, np.float32), {}

        def step(self, action: object) -> tuple[np.ndarray, float, bool, bool, dict[str, object]]:
            calls.append("step")
            return np.zeros(NUM_ACTIONS + 1, np.float32), 0.0, False, False, {}

    monkeypatch.setattr("tests.masked.Shown", Plain)
    gym.forget("tests.masked:Shown")
    try:
        assert not has_mask(gym.describe("tests.masked:Shown").observations)
    finally:
        gym.forget("tests.masked:Shown")
    assert calls == ["reset", "step"]


def test_a_mask_in_infos_of_an_observation_with_parts() -> None:
    class Two(InInfo):
        observation_space = spaces.Dict(a=spaces.Discrete(2), b=spaces.Discrete(2))

        def _seen(self, *, any_legal: bool = True) -> dict[str, int]:
            self._draw(any_legal)
            return {"a": 0, "b": 1}

    env = MaskFromInfo(Two())
    assert sorted(env.observation_space) == ["a", "action_mask", "b"]  # type: ignore[call-overload]
    seen, info = env.reset(seed=0)
    assert env.observation_space.contains(seen | {"action_mask": seen["action_mask"].astype("i1")})
    assert seen["action_mask"].tolist() == info["action_mask"]
