"""DeepMind Lab's episodes on the stand-in and, where it is installed, on the real engine."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from environments import dm, dmlab, dmlab_engine, dmlab_process, instructions, suites
from environments.dmlab import DMLab
from environments.dmlab_engine import Engine, EngineLost
from tests.environments.fakes import deepmind_lab as fake
from tests.environments.lab_contract import CRASH

FIXED = "seekavoid_arena_01"
LANGUAGE = "language_select_described_object"
FORWARD, LEFT, RIGHT = 0, 4, 5

MODULES = ["fake", "real"] if dmlab.installed() else ["fake"]
Make = Callable[..., DMLab]


@pytest.fixture(params=MODULES)
def make(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Make]:
    """Makes environments whose engine is the parameter's, and ends them."""
    if request.param == "fake":
        monkeypatch.syspath_prepend(Path(fake.__file__).parent)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made: list[DMLab] = []

    def make(level: str = FIXED, num_envs: int = 2, **arguments: Any) -> DMLab:
        made.append(DMLab(level, num_envs, cache=tmp_path / "cache", **arguments))
        return made[-1]

    yield make
    for env in made:
        env.close()
    left = {path.name for path in tmp_path.iterdir()}
    assert left <= {"cache"}  # no engine leaves files behind


stand_in_only = pytest.mark.parametrize("make", ["fake"], indirect=True)


def _processes() -> list[psutil.Process]:
    """The engines that this process has started, oldest first."""
    children = psutil.Process().children()
    engines = [child for child in children if dmlab_process.__name__ in child.cmdline()]
    return sorted(engines, key=psutil.Process.create_time)


def _kill(process: psutil.Process) -> None:
    """Kills an engine and waits until all of its doors are shut."""
    process.kill()
    while process.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)


def _play(env: DMLab, steps: int, **reset: Any) -> list[np.ndarray]:
    """Every observation and reward of walking about, as arrays [N, ...]."""
    seen, _ = env.reset(**reset)
    arrays = list(seen.values())
    for step in range(steps):
        action = (FORWARD, RIGHT, FORWARD, LEFT)[step % 4]
        seen, rewards, *_ = env.step(np.full(env.num_envs, action))
        arrays += [*seen.values(), rewards]
    return arrays


def _same(some: list[np.ndarray], others: list[np.ndarray]) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(some, others, strict=True))


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


def test_the_action_tables_are_the_papers() -> None:
    assert [list(action) for action in dmlab.FULL_ACTIONS] == list(PAPER.values())
    turning = {
        name.replace("Small ", ""): [2 * native[0], *native[1:]] for name, native in PAPER.items()
    }
    assert [list(action) for action in dmlab.IMPALA_ACTIONS] == [
        turning[name] for name in PAPER_IMPALA
    ]


@stand_in_only
@pytest.mark.parametrize("full", [True, False])
def test_each_action_reaches_the_engine_as_its_row_of_the_table(
    make: Make, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = make(num_envs=1, full_action_space=full)
    env.reset(seed=1)
    sent = []
    step = Engine.step

    def noted(engine: Engine, action: tuple[int, ...]) -> None:
        sent.append(action)
        step(engine, action)

    monkeypatch.setattr(Engine, "step", noted)
    table = dmlab.FULL_ACTIONS if full else dmlab.IMPALA_ACTIONS
    assert env.single_action_space == spaces.Discrete(len(table))
    angles = []
    for action in range(len(table)):
        seen, *_ = env.step(np.array([action]))
        angles.append(int(seen["image"][0, 0, 0, 1]))  # which the stand-in paints
    assert sent == list(table)
    expected = np.cumsum([4 * native[0] for native in table]) % 256  # four frames of each
    assert angles == expected.tolist()


def test_spaces_shapes_and_types(make: Make) -> None:
    env = make()
    assert not _processes()  # that an environment can be described costs no engine
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


@stand_in_only
@pytest.mark.parametrize("actions", [[0, 15], [0], [-1, 0], [[0, 0]], [0.0, 1.0]])
def test_bad_actions_are_refused(make: Make, actions: list) -> None:
    env = make()
    with pytest.raises(ValueError, match=r"Expected actions in .*received array"):
        env.step(np.array(actions))


def test_the_first_episodes_repeat_with_their_seed_and_only_then(make: Make) -> None:
    env = make(LANGUAGE)
    first = _play(env, 8, seed=3)
    assert _same(first, _play(env, 8, seed=3))
    assert not _same(first, _play(env, 8, seed=4))
    images = first[0::3]  # the first of every step's three, after the reset's two
    assert (images[0][0] != images[0][1]).any()  # rows differ


@stand_in_only
def test_every_episode_has_a_seed_of_its_own(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    reset = Engine.reset

    def noted(engine: Engine, seed: int) -> None:
        sent.append(seed)
        reset(engine, seed)

    monkeypatch.setattr(Engine, "reset", noted)
    env = make(num_envs=3)
    for seed in (1, None, None, 2):
        env.reset(seed=seed)
    assert {type(seed) for seed in sent} == {int}
    assert len(set(sent)) == len(sent) == 12
    assert all(0 <= seed < 2**31 for seed in sent)
    env.reset(seed=1)
    assert sent[12:] == sent[:3]


def test_an_episode_ends_and_the_next_step_begins_another(make: Make) -> None:
    env = make()
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
    assert len(_processes()) == 2


def test_what_is_said(make: Make) -> None:
    env = make(LANGUAGE)
    heard = env.reset(seed=2)[0]["instruction"]
    assert (heard[:, 0] > 0).all()
    assert (heard[:, -1] == 0).all()
    assert heard.max() < instructions.NUM_WORDS
    assert not make(FIXED).reset(seed=2)[0]["instruction"].any()


def test_a_held_out_level_may_be_played(make: Make) -> None:
    env = make("rooms_collect_good_objects_test", num_envs=1)
    env.reset(seed=1)
    env.step(np.array([FORWARD]))


def test_a_killed_engine_truncates_its_episode_and_is_replaced(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    env = make()
    env.reset(seed=1)
    before = env.step(np.array([FORWARD, FORWARD]))[0]
    killed, other = _processes()
    _kill(killed)
    seen, rewards, terminated, truncated, infos = env.step(np.array([RIGHT, RIGHT]))
    assert truncated.tolist() == [True, False]
    assert not terminated.any()
    assert rewards[0] == 0
    assert infos["lost"].tolist() == [1, 0]
    np.testing.assert_array_equal(seen["image"][0], before["image"][0])
    assert (seen["image"][1] != before["image"][1]).any()
    (warning,) = [record.getMessage() for record in caplog.records]
    assert f"The engine of level {FIXED}, process {killed.pid}, was killed by SIGKILL" in warning

    seen, rewards, terminated, truncated, infos = env.step(np.array([RIGHT, RIGHT]))
    assert not (terminated | truncated | infos["lost"]).any()
    assert rewards[0] == 0
    assert _processes()[0] == other
    (replacement,) = set(_processes()) - {other}
    assert replacement.pid != killed.pid
    later, *_ = env.step(np.array([RIGHT, RIGHT]))
    assert (later["image"] != seen["image"]).any(axis=(1, 2, 3)).all()


def test_an_engine_killed_between_episodes_costs_no_step(make: Make) -> None:
    env = make()
    env.reset(seed=1)
    _kill(_processes()[1])
    _, infos = env.reset()
    assert infos["lost"].tolist() == [0, 1]
    *_, terminated, truncated, infos = env.step(np.array([FORWARD, FORWARD]))
    assert not (terminated | truncated | infos["lost"]).any()


@stand_in_only
def test_engines_that_die_at_once_are_not_replaced_for_ever(make: Make) -> None:
    env = make("missing_level", num_envs=1)
    with pytest.raises(
        RuntimeError, match=r"'missing_level' cannot be played: 3 engines in a row(?s:.)*not found"
    ):
        env.reset()
    assert not _processes()


@stand_in_only
def test_only_deaths_without_a_step_between_them_count(make: Make) -> None:
    env = make(num_envs=1)
    env.reset()
    for _ in range(4):
        (engine,) = _processes()
        _kill(engine)
        env.step(np.array([FORWARD]))
        env.step(np.array([FORWARD]))
        assert not env.step(np.array([FORWARD]))[3].any()
    for _ in range(2):
        _kill(_processes()[0])
        env.step(np.array([FORWARD]))
        env.step(np.array([FORWARD]))
    _kill(_processes()[0])
    with pytest.raises(RuntimeError, match="3 engines in a row were lost"):
        env.step(np.array([FORWARD]))


@pytest.mark.parametrize(
    ("command", "how"), [(CRASH, "was killed by SIGSEGV"), ("+quit", "exited with 0")]
)
def test_an_engine_that_ends_is_lost(make: Make, tmp_path: Path, command: str, how: str) -> None:
    del make
    engine = Engine(FIXED, {"appendCommand": command}, tmp_path)
    engine.reset(1)
    with pytest.raises(EngineLost, match=f"^{how}"):
        engine.answer(60)
    engine.close()


@stand_in_only
def test_the_last_words_of_an_engine_are_repeated(make: Make, tmp_path: Path) -> None:
    del make
    engine = Engine(FIXED, {"appendCommand": CRASH}, tmp_path)
    engine.reset(1)
    with pytest.raises(EngineLost, match=r"; its last words: As was asked$"):
        engine.answer(60)
    engine.close()


def test_a_silent_engine_is_given_up(make: Make, tmp_path: Path) -> None:
    del make
    engine = Engine(FIXED, {}, tmp_path)
    engine.reset(1)
    engine.answer(60)
    (process,) = _processes()
    process.suspend()
    engine.step((0,) * 7)
    with pytest.raises(EngineLost, match=r"^was silent for 0\.1 s$"):
        engine.answer(0.1)
    engine.close()
    assert not _processes()


def test_closing_ends_every_engine(make: Make) -> None:
    env = make(num_envs=3)
    env.reset()
    assert len(_processes()) == 3
    env.close()
    assert not _processes()


def test_engines_load_neither_the_players_program_nor_tensorflow(make: Make) -> None:
    env = make(num_envs=1)
    env.reset()
    (engine,) = _processes()
    assert "tensorflow" not in Path(f"/proc/{engine.pid}/maps").read_text()


PLAYER = f"""
import pathlib, signal
from {dmlab.__name__} import DMLab
env = DMLab({FIXED!r}, 2, cache=pathlib.Path())
env.reset()
print("ready", flush=True)
signal.pause()
"""


def test_engines_end_and_tidy_up_when_their_player_is_killed(make: Make, tmp_path: Path) -> None:
    del make
    player = subprocess.Popen(
        [sys.executable, "-c", PLAYER],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    )
    assert player.stdout
    with player.stdout:
        assert player.stdout.readline() == b"ready\n"
    engines = psutil.Process(player.pid).children()
    assert len(engines) == len(list(tmp_path.glob("dmlab-*"))) == 2
    os.killpg(player.pid, signal.SIGKILL)
    player.wait()
    assert not psutil.wait_procs(engines, timeout=60)[1]
    assert not list(tmp_path.glob("dmlab-*"))


@stand_in_only
def test_what_an_engine_prints_is_kept_for_one_episode_only(make: Make, tmp_path: Path) -> None:
    env = make(num_envs=1)
    for _ in range(3):
        env.reset()
    (output,) = tmp_path.glob("dmlab-*/output.txt")
    assert output.read_bytes() == b"Loading a map\n"


@stand_in_only
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
    make: Make, monkeypatch: pytest.MonkeyPatch, level: str, path: str, more: dict[str, str]
) -> None:
    """The leave to play a held-out level is given to no other: it changes how some others end."""
    asked = []
    start = Engine.__init__

    def noted(engine: Engine, *arguments: Any) -> None:
        asked.append(arguments[:2])
        start(engine, *arguments)

    monkeypatch.setattr(Engine, "__init__", noted)
    make(level, num_envs=1).reset()
    assert asked == [(path, {"width": "96", "height": "72"} | more)]


@stand_in_only
def test_compiled_maps_are_kept(make: Make, tmp_path: Path) -> None:
    env = make("explore_goal_locations_small")
    first = _play(env, 1, seed=1)
    kept = sorted((tmp_path / "cache").iterdir())
    assert len(kept) == 2
    assert _same(first, _play(env, 1, seed=1))
    assert sorted((tmp_path / "cache").iterdir()) == kept


def test_several_levels_in_one_environment(make: Make) -> None:
    del make
    names = [f"dmlab:{LANGUAGE}"] * 2 + [f"dmlab:{FIXED}"]
    with contextlib.closing(suites.make_each(names, seed=1)) as env:
        seen, infos = env.reset()
        assert env.observation_space.contains(seen)
        assert seen["instruction"].any(axis=1).tolist() == [True, True, False]
        assert infos["lost"].tolist() == [0, 0, 0]
        _kill(_processes()[2])
        seen, *_, truncated, infos = env.step(np.zeros(3, np.int64))
        assert env.observation_space.contains(seen)
        assert truncated.tolist() == [False, False, True]
        assert infos["lost"].tolist() == [0, 0, 1]
        assert infos["lives"].tolist() == [0, 0, 0]


@stand_in_only
def test_the_environment_for_acmes_loop(make: Make) -> None:
    del make
    environment = dm.make(f"dmlab:{LANGUAGE}", seed=3)
    with contextlib.closing(suites.make(f"dmlab:{LANGUAGE}", 1, seed=3)) as env:
        expected = env.reset()[0]
        timestep = environment.reset()
        for action in (FORWARD, RIGHT, FORWARD):
            for part, spec in environment.observation_spec().items():
                spec.validate(timestep.observation[part])
                np.testing.assert_array_equal(timestep.observation[part], expected[part][0])
            expected, rewards, *_ = env.step(np.array([action]))
            timestep = environment.step(action)
            assert timestep.reward == rewards[0]
    environment.close()


@stand_in_only
def test_a_suites_spec_needs_no_engine(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    del make
    monkeypatch.setattr(dmlab_engine, "Engine", None)
    spec = suites.make_environment_spec("dmlab30")
    assert spec == suites.make_environment_spec(f"dmlab:{FIXED}")
    assert spec.observations["image"].shape == (72, 96, 3)
    assert (spec.observations["instruction"].maximum == instructions.NUM_WORDS - 1).all()
    assert spec.actions.num_values == 15
    nine = suites.make_environment_spec("dmlab30", full_action_space=False)
    assert nine.actions.num_values == 9


def test_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dmlab, "installed", lambda: False)
    for name in ("dmlab30", f"dmlab:{LANGUAGE}", f"catch,dmlab:{FIXED}"):
        with pytest.raises(ValueError, match=r"'dmlab:\w+' needs .* docs/dmlab\.md") as refusal:
            suites.check(name)
        assert "\n" not in str(refusal.value)


def test_the_levels() -> None:
    levels = dmlab.levels()
    assert len(levels) == len(set(levels)) == 12 + 30 + 2
    assert {FIXED, LANGUAGE, "rooms_collect_good_objects_train"} <= set(levels)
