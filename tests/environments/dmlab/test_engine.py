"""Engines that end, hang or are killed; nothing of them is left behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from environments.dmlab import environment
from environments.dmlab.engine import Engine, EngineLost
from tests.environments.dmlab import engines
from tests.environments.dmlab.engines import CRASH, FIXED, FORWARD, RIGHT
from tests.patience import PATIENCE


def test_a_killed_engine_truncates_its_episode_and_is_replaced(
    make_dmlab: engines.Make, caplog: pytest.LogCaptureFixture
) -> None:
    env = make_dmlab()
    env.reset(seed=1)
    before = env.step(np.array([FORWARD, FORWARD]))[0]
    killed, other = engines.running()
    engines.kill(killed)
    seen, rewards, terminated, truncated, infos = env.step(np.array([RIGHT, RIGHT]))
    assert truncated.tolist() == [True, False]
    assert not terminated.any()
    assert rewards[0] == 0
    assert infos["lost"].tolist() == [1, 0]
    np.testing.assert_array_equal(seen["image"][0], before["image"][0])
    assert (seen["image"][1] != before["image"][1]).any()
    (warning,) = [record.getMessage() for record in caplog.records]
    assert f"engines of level {FIXED!r} in process {killed.pid} was killed by SIGKILL" in warning

    seen, rewards, terminated, truncated, infos = env.step(np.array([RIGHT, RIGHT]))
    assert not (terminated | truncated | infos["lost"]).any()
    assert rewards[0] == 0
    assert engines.running()[0] == other
    later, *_ = env.step(np.array([RIGHT, RIGHT]))
    assert (later["image"] != seen["image"]).any(axis=(1, 2, 3)).all()


def test_an_engine_killed_between_episodes_costs_no_step(make_dmlab: engines.Make) -> None:
    env = make_dmlab()
    env.reset(seed=1)
    engines.kill(engines.running()[1])
    _, infos = env.reset()
    assert infos["lost"].tolist() == [0, 1]
    *_, terminated, truncated, infos = env.step(np.array([FORWARD, FORWARD]))
    assert not (terminated | truncated | infos["lost"]).any()


@engines.stand_in_only
def test_engines_that_die_at_once_are_not_replaced_for_ever(make_dmlab: engines.Make) -> None:
    env = make_dmlab("missing_level", num_envs=1)
    with pytest.raises(
        RuntimeError, match=r"3 engines of level 'missing_level' in a row were lost(?s:.)*not found"
    ):
        env.reset()
    assert not engines.running()


@pytest.fixture
def engine(make_dmlab: engines.Make, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator:
    """An engine that was told to begin an episode; indirect parameters are its console's."""
    del make_dmlab
    command = getattr(request, "param", None)
    found = Engine(FIXED, {"appendCommand": command} if command else {}, tmp_path)
    found.reset(1)
    yield found
    found.close()


@pytest.mark.parametrize(
    ("engine", "how"),
    [(CRASH, "was killed by SIGSEGV"), ("+quit", "exited with 0")],
    indirect=["engine"],
)
def test_an_engine_that_ends_is_lost(engine: Engine, how: str) -> None:
    with pytest.raises(EngineLost, match=f"^{how}"):
        engine.answer(PATIENCE)


@engines.stand_in_only
@pytest.mark.parametrize(
    ("said", "repeated"),
    [("short\nas it is\n", "short\nas it is"), ("begin\n" + "x" * 1500, "..." + "x" * 1000)],
)
def test_the_last_words_of_an_engine_are_repeated(
    engine: Engine, tmp_path: Path, said: str, repeated: str
) -> None:
    engine.answer(PATIENCE)
    (output,) = tmp_path.glob("dmlab-*/output.txt")
    output.write_text(said)
    engines.kill(engines.running()[0])
    with pytest.raises(EngineLost) as loss:
        engine.answer(PATIENCE)
    assert str(loss.value) == f"was killed by SIGKILL; its last words: {repeated}"


def test_a_silent_engine_is_given_up_and_its_player_heard_meanwhile(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.answer(PATIENCE)
    (process,) = engines.running()
    process.suspend()
    engine.step((0,) * 7)
    waits: list[None] = []
    monkeypatch.setattr("environments.copies.dead_simulators.on_wait", lambda: waits.append(None))
    with pytest.raises(EngineLost, match=r"^was silent for 2\.1 s$"):
        engine.answer(2.1)
    assert len(waits) == 2
    engine.close()
    assert not engines.running()


def test_engines_load_no_tensorflow_and_end_when_they_are_closed(make_dmlab: engines.Make) -> None:
    env = make_dmlab(num_envs=2)
    env.reset()
    for engine in engines.running():
        assert "tensorflow" not in Path(f"/proc/{engine.pid}/maps").read_text()
    env.close()
    assert not engines.running()


PLAYER = f"""
import pathlib, signal
from {environment.__name__} import DMLab
env = DMLab({FIXED!r}, 2, cache=pathlib.Path())
env.reset()
print("ready", flush=True)
signal.pause()
"""


def test_engines_end_and_tidy_up_when_their_player_is_killed(
    make_dmlab: engines.Make, tmp_path: Path
) -> None:
    del make_dmlab
    player = subprocess.Popen(
        [sys.executable, "-c", PLAYER],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    )
    assert player.stdout
    with player.stdout:
        assert player.stdout.readline() == b"ready\n"
    orphans = psutil.Process(player.pid).children()
    assert len(orphans) == len(list(tmp_path.glob("dmlab-*"))) == 2
    os.killpg(player.pid, signal.SIGKILL)
    player.wait()
    assert not psutil.wait_procs(orphans, timeout=PATIENCE)[1]
    assert not list(tmp_path.glob("dmlab-*"))


@engines.stand_in_only
def test_prints_are_kept_for_one_episode_and_maps_for_all(
    make_dmlab: engines.Make, tmp_path: Path
) -> None:
    env = make_dmlab("explore_goal_locations_small")
    first = engines.play(env, 1, seed=1)
    kept = sorted((tmp_path / "cache").iterdir())
    assert len(kept) == 2
    assert engines.same(first, engines.play(env, 1, seed=1))
    assert sorted((tmp_path / "cache").iterdir()) == kept
    env.reset()
    for output in tmp_path.glob("dmlab-*/output.txt"):
        assert output.read_bytes() == b"Loading a map\n"
