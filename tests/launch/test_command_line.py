"""A command's help is one screen, and what its flags cannot be is one sentence."""

import errno
import subprocess
import sys
from collections.abc import Iterator, Sequence

import pytest
from absl import flags
from absl.testing import flagsaver

from agents import fields
from environments import suites
from launch import command_line
from launch.command_line import HYPERPARAMETER
from run_folder import catalogue

flags.DEFINE_integer("test_number", 7, "A number.")
flags.DEFINE_string("test_name", None, " ".join(["word"] * 30))
flags.DEFINE_boolean("test_truth", False, "Whether.")
flags.DEFINE_enum("test_choice", "one", ["one", "two"], "Which.")
flags.DEFINE_list("test_list", ["one value", "and another one"], "Several.")

SECTIONS = {
    "First": ("test_name", "test_number"),
    "Then": ("test_truth", "test_choice", "test_list"),
}


@pytest.fixture(autouse=True)
def unparsed() -> Iterator[None]:
    with flagsaver.flagsaver():
        flags.FLAGS.unparse_flags()
        yield


def _run(
    monkeypatch: pytest.MonkeyPatch, sections: command_line.Sections, *arguments: str
) -> list[str]:
    """Begins a command up to its main, to which this is given."""
    given: list[str] = []
    monkeypatch.setattr(sys, "argv", ["command", *arguments])

    def main(rest: Sequence[str]) -> None:
        given.extend(rest)

    command_line.run(main, sections)
    return given


@pytest.mark.parametrize("asked", ["--help", "-h", "--helpshort"])
def test_help_shows_the_sections_in_order_and_ends_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], asked: str
) -> None:
    with pytest.raises(SystemExit) as exit_:
        _run(monkeypatch, SECTIONS, "--test_number=3", asked)
    assert exit_.value.code == 0
    assert capsys.readouterr().out.splitlines() == [
        "A command's help is one screen, and what its flags cannot be is one sentence.",
        "",
        "First",
        "  --test_name=                   " + " ".join(["word"] * 13),
        " " * 33 + " ".join(["word"] * 13),
        " " * 33 + " ".join(["word"] * 4),
        "  --test_number=7                A number.",
        "Then",
        "  --[no]test_truth               Whether.",
        "  --test_choice=one              <one|two>: Which.",
        "  --test_list=one value,and another one",
        "                                 Several.",
        "  --helpfull                     Every flag, those of libraries too.",
    ]


@pytest.mark.parametrize("length", [29, 30, 31])
def test_a_flag_that_fills_its_column_is_still_apart_from_its_text(length: int) -> None:
    lines = list(command_line._described("x" * length, "text"))
    assert " ".join(lines).split() == ["x" * length, "text"]
    assert len(lines) == (1 if length < 31 else 2)


def test_a_command_gets_what_its_flags_do_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _run(monkeypatch, SECTIONS, "--test_number=3") == ["command"]
    assert flags.FLAGS.test_number == 3


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("--test_number=three", "three"),
        ("--test_numbr=3", "Did you mean: test_number"),
        ("--notest_truth=3", "--notest_truth=3 does not take an argument"),
        ("--test_truth=maybe", "--test_truth=maybe"),
        ("--test_number=", "--test_number="),
        (f"--{'x' * 1_000}", "A flag's name has at most 64 characters, got '--xxx"),
        ("-\n", r"Unknown command line flag '\n'"),
        ("--test_number=\x1b[2J", r"--test_number=\x1b[2J: invalid literal"),
        ("--flagfile=missing", "'missing'"),
        ("--flagfile=/", "/"),
        ("--r2d2.=8", "'r2d2.'"),
        ("--.length=8", "'.length'"),
        ("--=8", "'--=8'"),
        ("-r2d2.length=8", "takes no hyperparameters, got --r2d2.length."),
        ("\udcff", r"Only flags are understood, got '\udcff'."),
        ("word", "Only flags are understood, got 'word'."),
        ("--r2d2.length=8", "takes no hyperparameters, got --r2d2.length."),
    ],
)
def test_what_cannot_be_read_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], argument: str, said: str
) -> None:
    with pytest.raises(SystemExit) as exit_:
        _run(monkeypatch, SECTIONS, argument)
    assert exit_.value.code == 2
    assert said in capsys.readouterr().err


def test_hyperparameters_are_shown_and_taken_where_a_section_names_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sections = {"Agent": (HYPERPARAMETER,)}
    assert _run(monkeypatch, sections, "--r2d2.length=8") == ["command"]
    assert command_line.config_overrides(sys.argv) == {"r2d2": {"length": "8"}}
    with pytest.raises(SystemExit):
        _run(monkeypatch, sections, "--help")
    assert (
        "  --<agent>.<field>=             A hyperparameter; --help=r2d2" in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--help=r2d2"], ["--agent=r2d2: the paper's, for Atari", "--r2d2.burn_in=40 "]),
        (
            ["--help=r2d2", "--env=catch"],
            ["--agent=r2d2: catch, --preset=local", "--r2d2.burn_in=8 ", "[Paper: 40.]"],
        ),
        (["--env=dmlab:any", "-help=impala", "--preset=paper"], ["--impala.length=100 "]),
        (["--help=popart", "--env=atari57"], ["--popart.num_tasks=57 "]),
        (["--help=r2d2", "--env=catch"], ["--r2d2.hidden_sizes=256 ", "--r2d2.rescale=true "]),
    ],
)
def test_the_help_of_an_agent_has_every_field_with_its_value_there(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: list[str],
) -> None:
    monkeypatch.setattr(suites, "check", lambda name: None)  # DMLab need not be installed
    with pytest.raises(SystemExit) as exit_:
        _run(monkeypatch, SECTIONS, *arguments)
    assert exit_.value.code == 0
    out = capsys.readouterr().out
    assert [part for part in said if part not in out] == []
    agent = next(a for a in arguments if "help" in a).partition("=")[2]
    for field, declared in fields.declared(type(catalogue.entry(agent).config)).items():
        assert f"--{agent}.{field}=" in out
        assert declared.meaning.split()[-1] in out
    assert max(map(len, out.splitlines())) <= 100


def test_the_help_of_an_agent_that_there_is_not_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        _run(monkeypatch, SECTIONS, "--help=r2d3")
    assert exit_.value.code == 2
    assert "Did you mean 'r2d2'?" in capsys.readouterr().err


def test_help_may_be_read_in_part() -> None:
    command = f"{sys.executable} -m launch.train --help=r2d2 | head -n 1"
    ended = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_names_flags_presets_and_configs_need_no_tensorflow() -> None:
    """What is mistyped is then answered within a second."""
    asked = [
        ["--agent=r2d3", "--env=catch", "--run_dir=run"],
        ["--agent=r2d2", "--env=cath", "--run_dir=run"],
        ["--agent=impala", "--env=atari:pong", "--run_dir=run", "--impala.lerning_rate=1"],
        ["--agent=impala", "--env=memory:recall", "--run_dir=run", "--num_acters=1"],
        ["--agent=popart", "--env=catch", "--run_dir=run", "--lp_x=y", "--num_actors=0"],
    ]
    heavy = ("tensorflow", "reverb", "launchpad", "acme", "sonnet", "matplotlib")
    program = (
        "import runpy, sys\n"
        "try: runpy.run_module('launch.train', run_name='__main__', alter_sys=True)\n"
        f"finally: print([name for name in {heavy} if name in sys.modules])"
    )
    for argv in asked:
        command = [sys.executable, "-c", program, *argv]
        ended = subprocess.run(command, capture_output=True, text=True)
        assert (ended.returncode, ended.stdout) == (2, "[]\n"), ended.stderr
        assert len(ended.stderr.splitlines()) in (1, 2)  # absl's sentences have a heading


def test_a_folder_that_cannot_be_written_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def main(_: Sequence[str]) -> None:
        raise OSError(errno.EROFS, "Read-only file system", "/run/evaluations")

    monkeypatch.setattr(sys, "argv", ["command"])
    with pytest.raises(SystemExit) as exit_:
        command_line.run(main, SECTIONS)
    assert exit_.value.code == 2
    said = "/run/evaluations cannot be written: Read-only file system.\n"
    assert capsys.readouterr().err == said


def test_any_other_error_of_the_system_keeps_its_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def main(_: Sequence[str]) -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file", "/run/logs")

    monkeypatch.setattr(sys, "argv", ["command"])
    with pytest.raises(FileNotFoundError):
        command_line.run(main, SECTIONS)
