"""DeepMind Lab's episodes on the stand-in and, where it is installed, on the real engine."""

import contextlib

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from environments import dm, scores, suites
from environments.copies import conversion
from environments.dm import make_environment_spec
from environments.dmlab import environment as dmlab
from environments.dmlab.engine import Engine
from tests.environments.dmlab import engines
from tests.environments.dmlab.engines import FIXED, FORWARD, LANGUAGE, RIGHT

# The order and the numbers of Table 2 in the appendix of Hessel et al. 2018.
PAPER = {
    "FW": [0, 0, 0, 1, 0, 0, 0],
    "BW": [0, 0, 0, -1, 0, 0, 0],
    "Strafe Left": [0, 0, -1, 0, 0, 0, 0],
    "Strafe Right": [0, 0, 1, 0, 0, 0, 0],
    "Small LL": [-10, 0, 0, 0, 0, 0, 0],
    "Small LR": [10, 0, 0, 0, 0, 0, 0],
    "Large LL": [-60, 0, 0, 0, 0, 0, 0],
    "Large LR": [60, 0, 0, 0, 0, 0, 0],
    "Look Down": [0, 10, 0, 0, 0, 0, 0],
    "Look Up": [0, -10, 0, 0, 0, 0, 0],
    "FW + Small LL": [-10, 0, 0, 1, 0, 0, 0],
    "FW + Small LR": [10, 0, 0, 1, 0, 0, 0],
    "FW + Large LL": [-60, 0, 0, 1, 0, 0, 0],
    "FW + Large LR": [60, 0, 0, 1, 0, 0, 0],
    "Fire": [0, 0, 0, 0, 1, 0, 0],
}
# Espeholt et al. 2018, Table C.2, in the other's terms: it has one angle of turning, 20.
PAPER_IMPALA = ["FW", "BW", "Strafe Left", "Strafe Right", "LL", "LR", "FW + LL", "FW + LR", "Fire"]


def test_the_action_tables_are_the_papers_and_have_names() -> None:
    """No engine is needed for that."""
    assert [list(dmlab.native(name)) for name in dmlab.FULL_ACTIONS] == list(PAPER.values())
    turning = {
        name.replace("Small ", ""): [2 * native[0], *native[1:]] for name, native in PAPER.items()
    }
    assert [list(dmlab.native(name)) for name in dmlab.IMPALA_ACTIONS] == [
        turning[name] for name in PAPER_IMPALA
    ]
    assert dmlab.DMLab(FIXED, 1).action_names == dmlab.FULL_ACTIONS
    assert dmlab.DMLab(FIXED, 1, full_action_space=False).action_names == dmlab.IMPALA_ACTIONS


@engines.stand_in_only
@pytest.mark.parametrize("full", [True, False])
def test_each_action_reaches_the_engine_as_its_row_of_the_table(
    make_dmlab: engines.Make, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = make_dmlab(num_envs=1, full_action_space=full)
    env.reset(seed=1)
    sent = engines.given_to("step", monkeypatch)
    names = dmlab.FULL_ACTIONS if full else dmlab.IMPALA_ACTIONS
    table = [dmlab.native(name) for name in names]
    assert env.single_action_space == spaces.Discrete(len(table))
    angles = []
    for action in range(len(table)):
        seen, *_ = env.step(np.array([action]))
        angles.append(int(seen["image"][0, 0, 0, 1]))  # which the stand-in paints
    assert sent == [(action,) for action in table]
    expected = np.cumsum([4 * native[0] for native in table]) % 256  # four frames of each
    assert angles == expected.tolist()


def test_spaces_shapes_and_types(make_dmlab: engines.Make) -> None:
    env = make_dmlab()
    assert not engines.running()  # that an environment can be described costs no engine
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert env.single_action_space == spaces.Discrete(15)
    seen, infos = env.reset()
    for _ in range(3):
        assert env.observation_space.contains(seen)
        assert (seen["image"].shape, seen["image"].dtype) == ((2, 72, 96, 3), np.uint8)
        assert (seen["instruction"].shape, seen["instruction"].dtype) == ((2, 16), np.int32)
        assert (infos["lost"].shape, infos["lost"].dtype) == ((2,), np.int32)
        seen, rewards, terminated, truncated, infos = env.step(np.array([FORWARD, RIGHT]))
        assert (rewards.shape, rewards.dtype) == ((2,), np.float32)
        assert (terminated.shape, terminated.dtype) == ((2,), np.bool_)
        assert (truncated.shape, truncated.dtype) == ((2,), np.bool_)
        for array in (*seen.values(), rewards, terminated, truncated):
            array[:] = 1  # they belong to the caller
    with pytest.raises(ValueError, match=r"Actions must lie in .*got array"):
        env.step(np.array([0, 15]))


def test_the_first_episodes_repeat_with_their_seed_and_only_then(make_dmlab: engines.Make) -> None:
    env = make_dmlab(LANGUAGE)
    first = engines.play(env, 8, seed=3)
    assert engines.same(first, engines.play(env, 8, seed=3))
    assert not engines.same(first, engines.play(env, 8, seed=4))
    images = first[0::3]  # the first of every step's three, after the reset's two
    assert (images[0][0] != images[0][1]).any()  # rows differ


@engines.stand_in_only
def test_every_episode_has_a_seed_of_its_own(
    make_dmlab: engines.Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = engines.given_to("reset", monkeypatch)
    env = make_dmlab(num_envs=3)
    for seed in (1, None, None, 2, 1):
        env.reset(seed=seed)
    sent = [seed for (seed,) in given]
    assert {type(seed) for seed in sent} == {int}
    assert len(set(sent[:12])) == 12
    assert all(0 <= seed < 2**31 for seed in sent)
    assert sent[12:] == sent[:3]


def test_an_episode_ends_and_the_next_step_begins_another(make_dmlab: engines.Make) -> None:
    env = make_dmlab()
    seen, _ = env.reset(seed=1)
    ends: list[tuple[int, int]] = []
    for step in range(310):
        before = seen
        seen, rewards, terminated, truncated, infos = env.step(np.array([FORWARD, RIGHT]))
        assert not truncated.any()
        assert not infos["lost"].any()
        ended = [row for _, row in ends]
        for row in np.flatnonzero(terminated):
            ends.append((step, int(row)))
            for part in seen:  # nothing can be seen after the last step
                np.testing.assert_array_equal(seen[part][row], before[part][row])
        for row in ended:
            if (step - 1, row) in ends:
                assert rewards[row] == 0
                assert not terminated[row]
                assert (seen["image"][row] != before["image"][row]).any()
    # 20 s of 60 frames, four a step; who eats every apple is done sooner.
    assert (299, 1) in ends
    assert len(engines.running()) == 2


def test_what_is_said(make_dmlab: engines.Make) -> None:
    env = make_dmlab(LANGUAGE)
    heard = env.reset(seed=2)[0]["instruction"]
    assert (heard[:, 0] > 0).all()
    assert (heard[:, -1] == 0).all()
    assert heard.max() < conversion.NUM_WORDS
    assert not make_dmlab(FIXED).reset(seed=2)[0]["instruction"].any()


@engines.stand_in_only
@pytest.mark.parametrize(
    ("level", "path", "more"),
    [
        (FIXED, FIXED, {}),
        (LANGUAGE, f"contributed/dmlab30/{LANGUAGE}", {}),
        (
            "rooms_collect_good_objects_test",
            "contributed/dmlab30/rooms_collect_good_objects_test",
            {"allowHoldOutLevels": "true"},
        ),
    ],
)
def test_what_the_engine_is_asked_for(
    make_dmlab: engines.Make,
    monkeypatch: pytest.MonkeyPatch,
    level: str,
    path: str,
    more: dict[str, str],
) -> None:
    """The leave to play a held-out level is given to no other: it changes how some others end."""
    asked = engines.given_to("__init__", monkeypatch)
    make_dmlab(level, num_envs=1).reset()
    assert [a[:2] for a in asked] == [(path, {"width": "96", "height": "72"} | more)]


def test_several_levels_in_one_environment(make_dmlab: engines.Make) -> None:
    del make_dmlab
    names = [f"dmlab:{LANGUAGE}"] * 2 + [f"dmlab:{FIXED}"]
    with contextlib.closing(suites.make_each(names, seed=1)) as env:
        seen, infos = env.reset()
        assert env.observation_space.contains(seen)
        assert seen["instruction"].any(axis=1).tolist() == [True, True, False]
        assert infos["lost"].tolist() == [0, 0, 0]
        engines.kill(engines.running()[2])
        seen, *_, truncated, infos = env.step(np.zeros(3, np.int64))
        assert env.observation_space.contains(seen)
        assert truncated.tolist() == [False, False, True]
        assert infos["lost"].tolist() == [0, 0, 1]
        assert infos["lives"].tolist() == [0, 0, 0]


@engines.stand_in_only
def test_the_environment_for_acmes_loop(make_dmlab: engines.Make) -> None:
    del make_dmlab
    with contextlib.closing(dm.make(f"dmlab:{LANGUAGE}", seed=3)) as environment:
        timestep = environment.reset()
        for action in (FORWARD, RIGHT):
            for part, spec in environment.observation_spec().items():
                spec.validate(timestep.observation[part])
            timestep = environment.step(action)


@engines.stand_in_only
def test_a_suites_spec_needs_no_engine(
    make_dmlab: engines.Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    del make_dmlab
    monkeypatch.setattr(Engine, "__init__", None)
    spec = make_environment_spec("dmlab30")
    assert spec == make_environment_spec(f"dmlab:{FIXED}")
    assert spec.observations["image"].shape == (72, 96, 3)
    assert (spec.observations["instruction"].maximum == conversion.NUM_WORDS - 1).all()
    assert spec.actions.num_values == 15
    nine = make_environment_spec("dmlab30", full_action_space=False)
    assert nine.actions.num_values == 9


def test_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dmlab, "installed", lambda: False)
    for name in ("dmlab30", f"dmlab:{LANGUAGE}", f"catch,dmlab:{FIXED}"):
        with pytest.raises(ValueError, match=r"'dmlab:\w+' needs .* docs/dmlab\.md") as refusal:
            suites.check(name)
        assert "\n" not in str(refusal.value)


def test_the_levels() -> None:
    levels = {*dmlab.CLASSICS, *scores.DMLAB30_LEVELS}
    assert len(levels) == 12 + 30 + 2
    for level in (FIXED, LANGUAGE, "rooms_collect_good_objects_train"):
        assert level in levels
        suites.check_names(f"dmlab:{level}")
