"""What a member's run is told, and how it is started, watched and ended."""

import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import recurrent_replay
from agents import fields
from agents.impala.config import Config
from launch.members import turn
from launch.members.turn import Turn
from population import ranges
from population.folder import PopulationFolder
from run_folder import texts
from run_folder.settings import SettingsError
from tests.forks import fork
from tests.patience import wait_for
from tests.population.populations import settings_of

_SLEEPS = "import time; print('begun', flush=True); time.sleep(600)"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("learning_rate", 5e-6),
        ("learning_rate", 1 / 3),
        ("learning_rate", 1e-15),
        ("rho_bar", float("inf")),
        ("batch_size", 16),
        ("life_loss", False),
        ("correction", "one_step"),
        ("period", None),
        ("max_gradient_norm", None),
        ("hidden_sizes", (64, 32)),
    ],
)
def test_a_value_is_typed_as_it_is_read(name: str, value: Any) -> None:
    text = texts.typed(value)
    assert texts.value_of(name, text, fields.declared(Config)[name].annotation) == value
    if isinstance(value, tuple):
        assert texts.typed(list(value)) == text  # as JSON has it


def test_a_member_is_told_what_it_shares_and_what_is_its_own() -> None:
    flags = dict(agent="impala", env="catch", num_actors=4, full_rendering=False, seed=None)
    overrides = {"": dict(annealing_frames="none"), "impala": dict(learning_rate="0.001")}
    run_dir = pathlib.Path("/population/members/03")
    said = turn.arguments(run_dir, flags, overrides, resume=False)
    assert said == [
        "--run_dir=/population/members/03",
        "--agent=impala",
        "--env=catch",
        "--num_actors=4",
        "--full_rendering=false",
        "--annealing_frames=none",
        "--impala.learning_rate=0.001",
    ]
    assert turn.arguments(run_dir, {}, {}, resume=True) == [said[0], "--resume"]


def test_the_settings_of_a_member_are_its_draws_beside_what_all_share() -> None:
    shared = dict(impala=dict(length="8", learning_rate="0.5"))
    shared[""] = dict(annealing_frames="none")
    train = dict(values=dict(num_actors=4), fields=shared)
    population, folder = settings_of(seed=5, train=train), PopulationFolder(pathlib.Path("/here"))
    for member in range(3):
        drawn = ranges.draw(population.ranges, member, 5)
        made = turn.settings_of(population, folder, member, drawn)
        config = made.configs["impala"]
        assert (made.num_actors, made.seed, made.preset) == (4, population.seed_of(member), "local")
        assert made.run_dir == f"/here/members/0{member}"
        assert (config.length, config.annealing_frames) == (8, None)
        assert (config.learning_rate, config.entropy_cost) == tuple(drawn.values())
    assert shared["impala"] == dict(length="8", learning_rate="0.5")  # it was not changed


def test_settings_that_no_run_has_are_refused() -> None:
    population, folder = settings_of(sweep=dict(c_bar="uniform:0.5:2")), PopulationFolder
    with pytest.raises(SettingsError, match=r"--impala\.c_bar must be at most rho_bar"):
        turn.settings_of(population, folder(pathlib.Path("/here")), 0, dict(c_bar=1.5))


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> PopulationFolder:
    return PopulationFolder(tmp_path)


@pytest.fixture
def play(
    folder: PopulationFolder, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Turn]]:
    """Starts a turn in which a program is run instead of `launch.train`."""
    popen, started = subprocess.Popen, []

    def start(command: list[str], **how: Any) -> Any:
        assert command[:3] == [sys.executable, recurrent_replay.__file__, "train"]
        process = popen([sys.executable, "-c", command[3]], **how)
        started.append(process)
        return process

    monkeypatch.setattr(subprocess, "Popen", start)
    yield lambda program: Turn(folder, 3, [program])
    for process in started:
        process.kill()
        process.wait()


def _wait(turn: Turn) -> int:
    def find() -> list[int]:
        code = turn.ended()
        return [] if code is None else [code]

    return wait_for(find)[0]


def _wait_for(folder: PopulationFolder, word: str) -> None:
    wait_for(lambda: word in folder.output(3).read_text())


@pytest.mark.parametrize("code", [0, 1, 2])
def test_a_turn_tells_its_exit_code_and_its_last_words(
    code: int, folder: PopulationFolder, play: Callable[[str], Turn]
) -> None:
    (folder.path / "outputs").mkdir()
    folder.output(3).write_text("of the turn before\n")
    found = play(f"import sys\nfor i in range(30): print('line', i)\nsys.exit({code})")
    assert found.member == 3
    assert _wait(found) == code
    assert found.said() == "\n".join(f"line {i}" for i in range(15, 30))
    text = folder.output(3).read_text()
    assert text.startswith("of the turn before\nline 0\n")


def test_a_turn_says_nothing_that_another_said_before(
    folder: PopulationFolder, play: Callable[[str], Turn]
) -> None:
    (folder.path / "outputs").mkdir()
    folder.output(3).write_text("of the turn before\n")
    found = play("print('of this one')")
    assert _wait(found) == 0
    assert found.said() == "of this one"


def test_a_turn_reads_nothing_of_what_is_typed(
    folder: PopulationFolder, play: Callable[[str], Turn]
) -> None:
    (read, write), terminal = os.pipe(), os.dup(0)
    os.dup2(read, 0)
    try:
        os.write(write, b"typed\n")
        found = play("import sys; print(repr(sys.stdin.read()))")
    finally:
        os.dup2(terminal, 0)
        for file in (read, write, terminal):
            os.close(file)
    assert _wait(found) == 0
    assert found.said() == "''"


def test_what_it_writes_as_errors_and_in_no_code_is_kept(
    folder: PopulationFolder, play: Callable[[str], Turn]
) -> None:
    found = play(r"import sys; sys.stderr.buffer.write(b'\xff it broke'); sys.exit(2)")
    assert _wait(found) == 2
    assert found.said() == "\N{REPLACEMENT CHARACTER} it broke"
    folder.output(3).unlink()
    assert found.said() == ""


def test_a_turn_is_asked_to_end_by_a_file_or_by_a_signal(
    folder: PopulationFolder, play: Callable[[str], Turn]
) -> None:
    found = play(_SLEEPS)
    found.stop()  # its run has made no folder yet
    assert not folder.member(3).stop.exists()
    folder.member(3).nodes.mkdir(parents=True)
    found.stop()
    found.stop()
    assert folder.member(3).stop.exists()
    assert found.ended() is None
    found.signal()
    assert _wait(found) == -signal.SIGTERM
    found.signal()  # which it is not told any more


def test_a_turn_is_in_a_session_of_its_own(
    folder: PopulationFolder, play: Callable[[str], Turn]
) -> None:
    found = play("import os; print(os.getsid(0) == os.getpid() == os.getpgid(0))")
    assert _wait(found) == 0
    assert found.said() == "True"


@pytest.mark.parametrize("text", [None, "", "{", "\xff"])
def test_progress_that_cannot_be_read_is_none(
    text: str | None, folder: PopulationFolder, play: Callable[[str], Turn]
) -> None:
    found = play("")
    run = folder.member(3)
    run.nodes.mkdir(parents=True)
    if text is not None:
        run.progress.write_text(text, encoding="latin-1")
    assert found.progress() is None
    run.progress.write_text('{"counts": {}}')
    assert found.progress() == {"counts": {}}
    _wait(found)


def test_a_turn_is_asked_to_end_when_who_started_it_is_killed(
    folder: PopulationFolder, play: Callable[[str], Turn]
) -> None:
    program = (
        "import signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('asked', flush=True), exit(0)))\n"
        "print('begun', flush=True)\n"
        "time.sleep(600)"
    )
    read, told = os.pipe()

    def start_it() -> None:
        play(program)
        os.write(told, b"started")
        signal.pause()

    parent = fork(start_it)
    os.close(told)
    with os.fdopen(read) as said:
        assert said.read(7) == "started"
    _wait_for(folder, "begun")
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    _wait_for(folder, "asked")
