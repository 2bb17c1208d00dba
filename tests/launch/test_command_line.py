"""A command's help is one screen, and what its flags cannot be is one sentence."""

import errno
import sys
from collections.abc import Iterator, Sequence

import pytest
from absl import app, flags
from absl.testing import flagsaver

from launch import command_line
from launch.command_line import HYPERPARAMETER

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
    monkeypatch.setattr(
        app, "run", lambda main, flags_parser: main(flags_parser(["command", *arguments]))
    )

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
        "",
        "Then",
        "  --[no]test_truth               Whether.",
        "  --test_choice=one              <one|two>: Which.",
        "  --test_list=one value,and another one",
        "                                 Several.",
        "",
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
        "  --<agent>.<field>=             Any field of an agent's Config" in capsys.readouterr().out
    )


def test_a_folder_that_cannot_be_written_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def main(_: Sequence[str]) -> None:
        raise OSError(errno.EROFS, "Read-only file system", "/run/evaluations")

    monkeypatch.setattr(app, "run", lambda main, flags_parser: main(["command"]))
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

    monkeypatch.setattr(app, "run", lambda main, flags_parser: main(["command"]))
    with pytest.raises(FileNotFoundError):
        command_line.run(main, SECTIONS)
