"""What each call of DeepMind Lab's Python module takes, returns and refuses."""

import numpy as np
import pytest

from tests.environments.lab.play import (
    FIXED,
    FORWARD,
    HELD_OUT,
    LANGUAGE,
    OBSERVATIONS,
    SIZE,
    STAY,
    TURN,
    digest,
    make_lab,
)


def arguments_have_one_type_each() -> None:
    for arguments in (
        dict(observations=tuple(OBSERVATIONS)),
        dict(observations=None),
        dict(config=["width"]),
        dict(config={"width": 96}),
        dict(level=3),
    ):
        with pytest.raises(TypeError):
            make_lab(**arguments)


def wrong_values_raise_before_anything_runs() -> None:
    for error, words, arguments in (
        (ValueError, "Unknown observation 'DEPTH'", dict(observations=["DEPTH"])),
        (RuntimeError, "Level not found", dict(level="missing_level")),
        (RuntimeError, "multiple of 4", dict(config=SIZE | {"width": "90"})),
        (RuntimeError, "multiple of 4", dict(config=SIZE | {"height": "0"})),
        (RuntimeError, "nonsense", dict(config=SIZE | {"nonsense": "1"})),
        (RuntimeError, "renderer", dict(renderer="watercolour")),
    ):
        with pytest.raises(error, match=words):
            make_lab(**arguments)


def a_held_out_level_needs_leave() -> None:
    with pytest.raises(RuntimeError, match="only be used during evaluation"):
        make_lab(HELD_OUT)
    for level in (HELD_OUT, FIXED):  # elsewhere the leave changes nothing
        assert make_lab(level, SIZE | {"allowHoldOutLevels": "true"}).reset(seed=1) is True


def specs_name_the_actions_and_observations() -> None:
    lab = make_lab()
    assert [(action["name"], action["min"], action["max"]) for action in lab.action_spec()] == [
        ("LOOK_LEFT_RIGHT_PIXELS_PER_FRAME", -512, 512),
        ("LOOK_DOWN_UP_PIXELS_PER_FRAME", -512, 512),
        ("STRAFE_LEFT_RIGHT", -1, 1),
        ("MOVE_BACK_FORWARD", -1, 1),
        ("FIRE", 0, 1),
        ("JUMP", 0, 1),
        ("CROUCH", 0, 1),
    ]
    specs = {spec["name"]: (spec["dtype"], spec["shape"]) for spec in lab.observation_spec()}
    assert specs["RGB_INTERLEAVED"] == (np.uint8, (72, 96, 3))
    assert specs["INSTR"] == (str, ())


def nothing_can_be_done_before_the_first_reset() -> None:
    lab = make_lab()
    assert lab.is_running() is False
    with pytest.raises(RuntimeError, match="wrong status"):
        lab.step(STAY)
    with pytest.raises(RuntimeError, match="wrong status"):
        lab.observations()


def reset_returns_true_and_wants_a_python_seed() -> None:
    lab = make_lab()
    for seed in (np.int32(1), np.int64(1), "1", 1.0):
        with pytest.raises(ValueError, match="'seed' must be int or None"):
            lab.reset(seed=seed)
    assert not lab.is_running()
    assert lab.reset(seed=1) is True
    assert lab.reset(seed=2**31 - 1) is True
    assert lab.reset(episode=3, seed=None) is True
    assert lab.is_running() is True


def step_returns_the_summed_reward_of_its_frames() -> None:
    once, apart = make_lab(), make_lab()
    for lab in (once, apart):
        lab.reset(seed=3)
    rewards = []
    for step in range(100):
        action = FORWARD if step % 5 else TURN
        reward = once.step(action, num_steps=4)
        assert type(reward) is float
        assert reward == sum(apart.step(action) for _ in range(4))
        rewards.append(reward)
    assert any(rewards)
    assert once.num_steps() == apart.num_steps() == 400


def actions_are_seven_c_ints() -> None:
    lab = make_lab()
    lab.reset(seed=1)
    with pytest.raises(TypeError):
        lab.step([0] * 7)
    for action in (np.zeros(7, np.int64), np.zeros(7, np.float32), np.zeros(7, np.int16)):
        with pytest.raises(ValueError, match="must have dtype"):
            lab.step(action)
    for action in (np.zeros(6, np.intc), np.zeros((1, 7), np.intc), np.intc(0) * STAY[0:1]):
        with pytest.raises(ValueError, match="must have shape"):
            lab.step(action)
    assert lab.num_steps() == 0


def a_strided_action_is_misread() -> None:
    """Not what the view shows but what lies behind its first number in memory is acted."""
    memory = np.zeros(14, np.intc)
    memory[0], memory[3], memory[6] = 20, 1, 0
    memory[8] = 1
    view = memory[::2]
    assert not np.array_equal(view, memory[:7])
    digests = []
    for action in (view, memory[:7], view.copy()):
        lab = make_lab()
        lab.reset(seed=1)
        digests.append(digest(lab, [action] * 8))
        lab.close()
    assert digests[0] == digests[1] != digests[2]


def bounds_of_actions_are_not_checked() -> None:
    lab = make_lab()
    lab.reset(seed=1)
    lab.step(np.array([700, 0, 0, 5, 0, 0, 0], np.intc))
    assert lab.is_running()


def observations_are_new_arrays_and_plain_words() -> None:
    lab = make_lab()
    lab.reset(seed=1)
    seen = lab.observations()
    assert list(seen) == OBSERVATIONS
    image = seen["RGB_INTERLEAVED"]
    assert (type(image), image.dtype, image.shape) == (np.ndarray, np.uint8, (72, 96, 3))
    assert image.std() > 1
    assert (type(seen["INSTR"]), seen["INSTR"]) == (str, "")
    copy = image.copy()
    image[:] = 0
    np.testing.assert_array_equal(lab.observations()["RGB_INTERLEAVED"], copy)
    lab.step(TURN, num_steps=4)
    assert (lab.observations()["RGB_INTERLEAVED"] != copy).any()


def the_instruction_changes_within_an_episode() -> None:
    lab = make_lab(LANGUAGE)
    lab.reset(seed=1)
    rng = np.random.default_rng(0)
    heard: set[str] = set()
    for _ in range(800):  # 53 of the episode's 60 s
        heard.add(lab.observations()["INSTR"])
        lab.step(TURN * rng.integers(-1, 2) + FORWARD, num_steps=4)
    assert lab.is_running()
    assert len(heard) > 1
    assert all(words.split() for words in heard)


def an_episode_ends_with_a_reward_and_nothing_to_see() -> None:
    lab = make_lab()
    lab.reset(seed=1)
    steps = 0
    while lab.is_running():
        assert type(lab.step(STAY, num_steps=7)) is float
        steps += 1
    assert steps == -(-20 * 60 // 7)
    assert lab.num_steps() == 7 * steps > 20 * 60  # frames that were not played count too
    for forbidden in (lab.observations, lambda: lab.step(STAY)):
        with pytest.raises(RuntimeError, match="wrong status"):
            forbidden()
    assert lab.reset(seed=2) is True
    assert lab.is_running()
    assert lab.num_steps() == 0
    lab.step(STAY, num_steps=4)
    lab.observations()


def a_closed_engine_does_nothing() -> None:
    lab = make_lab()
    lab.reset(seed=1)
    assert lab.close() is True
    assert lab.close() is False
    assert lab.is_running() is False
    with pytest.raises(RuntimeError, match="wrong status"):
        lab.step(STAY)
    with pytest.raises(RuntimeError, match="wrong status"):
        lab.observations()
