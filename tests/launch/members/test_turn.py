"""A member's run: its settings, and how it is started, watched and ended."""

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
from launch.members.loop import Turn
from population.folder import PopulationFolder
from run_folder import texts
from run_folder.settings import SettingsError
from tests.forks import fork
from tests.patience import wait_for
from tests.population.populations import settings_of


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("learning_rate", 1 / 3),
        ("rho_bar", float("inf")),
        ("life_loss", False),
        ("correction", "one_step"),
        ("period", None),
        ("hidden_sizes", (64, 32)),
    ],
)
def test_a_value_is_typed_as_it_is_read(name: str, value: Any) -> None:
    text = texts.typed(list(value) if isinstance(value, tuple) else value)  # as JSON has it
    assert texts.value_of(name, text, fields.declared(Config)[name].annotation) == value


def test_the_settings_of_a_member_are_its_draws_beside_what_all_share() -> None:
    shared = dict(impala=dict(length="8", learning_rate="0.5"))
    shared[""] = dict(annealing_frames="none")
    folder = PopulationFolder(pathlib.Path("/here"))
    population = settings_of(seed=5, overrides=shared)
    for member in range(3):
        drawn = population.draw(member)
        made = population.run_of(folder, member, drawn)
        config = made.configs["impala"]
        assert (made.num_actors, made.seed, made.preset) == (4, population.seed_of(member), "local")
        assert made.run_dir == f"/here/members/0{member}"
        assert (config.length, config.annealing_frames) == (8, None)
        assert (config.learning_rate, config.entropy_cost) == tuple(drawn.values())
    assert shared["impala"] == dict(length="8", learning_rate="0.5")  # it was not changed


def test_settings_that_no_run_has_are_refused() -> None:
    population, folder = settings_of(sweep=dict(c_bar="uniform:0.5:2")), PopulationFolder
    with pytest.raises(SettingsError, match=r"--impala\.c_bar must be at most rho_bar"):
        population.run_of(folder(pathlib.Path("/here")), 0, dict(c_bar=1.5))


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
    return wait_for(lambda: [code] if (code := turn.ended()) is not None else [])[0]


_LINES = "\n".join(f"line {i}" for i in range(30))


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        ("print('of this one')", 0, "of this one"),
        (f"print({_LINES!r}); exit(1)", 1, _LINES[_LINES.index("line 15") :]),
        (
            r"import sys; sys.stderr.buffer.write(b'\xff it broke'); exit(2)",
            *(2, "\N{REPLACEMENT CHARACTER} it broke"),
        ),
        # What is typed is for the population, and so is Ctrl-C.
        ("import sys; print(repr(sys.stdin.read()))", 0, "''"),
        ("import os; print(os.getsid(0) == os.getpid() == os.getpgid(0))", 0, "True"),
    ],
)
def test_a_turn_tells_its_exit_code_and_its_own_last_words(
    program: str, code: int, said: str, folder: PopulationFolder, play: Callable[[str], Turn]
) -> None:
    (folder.path / "outputs").mkdir()
    folder.output(3).write_text("of the turn before\n")
    (read, write), terminal = os.pipe(), os.dup(0)
    os.dup2(read, 0)
    try:
        os.write(write, b"typed\n")
        found = play(program)
    finally:
        os.dup2(terminal, 0)
        for file in (read, write, terminal):
            os.close(file)
    assert _wait(found) == code
    assert found.said() == said
    assert folder.output(3).read_text(errors="replace").startswith("of the turn before\n")
    folder.output(3).unlink()
    assert found.said() == ""


def test_a_turn_is_asked_to_end_by_a_file_or_by_a_signal(
    folder: PopulationFolder, play: Callable[[str], Turn]
) -> None:
    found = play("import time; time.sleep(600)")
    assert found.progress() is None
    found.stop()  # its run has made no folder yet
    assert not folder.member(3).stop.exists()
    folder.member(3).nodes.mkdir(parents=True)
    folder.member(3).progress.write_text('{"counts": {}}')
    assert found.progress() == {"counts": {}}
    found.stop()
    found.stop()
    assert folder.member(3).stop.exists()
    assert found.ended() is None
    found.signal()
    assert _wait(found) == -signal.SIGTERM
    found.signal()  # which it is not told any more


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
    wait_for(lambda: "begun" in folder.output(3).read_text())
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    wait_for(lambda: "asked" in folder.output(3).read_text())
