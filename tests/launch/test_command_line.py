"""A command's help is one screen, and what its flags cannot be is one sentence."""

import errno
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator, Sequence

import pytest
from absl import flags
from absl.testing import flagsaver

from agents import fields
from agents.finite import NotFiniteError
from environments import suites
from launch import command_line
from launch.command_line import HYPERPARAMETER
from run_folder import catalogue, texts

ROOT = pathlib.Path(__file__).resolve().parents[2]

command_line.define_whole("test_number", 7, "A number.")
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
        ("--test_number=\x1b[2J", r"--test_number=\x1b[2J: a whole number was"),
        ("--flagfile=missing", "'missing'"),
        ("--flagfile=/", "/"),
        ("--r2d2.=8", "'r2d2.'"),
        ("--.length=8", "There is no flag --.length. Did you mean --r2d2.length?"),
        ("--=8", "'--=8'"),
        ("-r2d2.length=8", "takes no hyperparameters, got --r2d2.length."),
        ("\udcff", r"Only flags are understood, got '\udcff'."),
        ("word", "Only flags are understood, got 'word'."),
        ("--help=r2d3", "Did you mean 'r2d2'?"),
        ("--help=r2d2,impala", "--help must name one agent, as --help=r2d2."),
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
        (["--help=r2d2", "--env", "catch"], ["--agent=r2d2: catch, --preset=local"]),
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


def test_help_may_be_read_in_part() -> None:
    command = f"{sys.executable} -m launch.train --help=r2d2 | head -n 1"
    ended = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_line_that_nobody_reads_ends_nothing_that_is_printed_or_forked_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as out, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", out)
        command_line.say("One.")
        command_line.say("Another.")
        out.flush()


_TYPED = (  # what was typed -> a part of the sentence that answers it
    ("train --agent=r2d3 --env=catch --run_dir=run", "Did you mean 'r2d2'?"),
    ("train --agent=r2d2 --env=cath --run_dir=run", "did you mean catch?"),
    ("train --agent=r2d2 --env=CartPole-v1 --run_dir=run", "did you mean gym:CartPole-v1?"),
    ("train --agent=r2d2 --env=catch --learning_rate=1", "Did you mean --r2d2.learning_rate?"),
    ("train --agent=stac --env=catch --batch_size=1", "Did you mean --stac.batch_size?"),
    ("train --env=catch --priority_exponnt=1", "Did you mean --r2d2.priority_exponent?"),
    ("train --env=catch --num_acters=1", "Did you mean: num_actors ?"),
    ("train --env=catch --num_actors=atuo", "number or auto was expected, got 'atuo'"),
    (
        "train --agent=r2d2 --env=catch --run_dir=run --r2d2.lr=1",
        "--r2d2.learning_rate? --help=r2d",
    ),
    ("train --agent=r2d2 --env=catch --run_dir=run --max_actor_steps=1.5", "or 1e6, got '1.5'"),
    ("train --agent=r2d2 --env=catch --run_dir=run --max_actor_steps=1e99", "or 1e6, got '1e99'"),
    ("train --agent=popart --env=catch --run_dir=run --lp_x=y --num_actors=0", "got 0."),
    ("train --resume", "--run_dir must be given."),
    ("train --resume --run_dir=none", "none holds no run"),
    ("evaluate --run_dir=none", "none holds no run"),
    ("export --run_dir=none", "none holds no run"),
    ("diagnose --run_dir=none", "none holds no run"),
    ("report --run_dir=none", "none holds no run"),
    ("population --agent=impela --env=catch --run_dir=run", "Did you mean 'impala'?"),
    (
        "population --agent=impala --env=catch --run_dir=run --sweep=impala.discount=log:1:1",
        "which is empty",
    ),
    ("population --agent=impala --env=catch --run_dir=run --member=99", "--member must be from"),
    ("population --resume", "--run_dir must be given."),
)


def test_what_is_mistyped_is_answered_before_tensorflow_is_imported(tmp_path: pathlib.Path) -> None:
    """So within a second or two."""
    heavy = ("tensorflow", "reverb", "launchpad", "acme", "sonnet", "matplotlib")
    program = (
        "import importlib, sys\n"
        "from absl.testing import flagsaver\n"
        "from launch import command_line\n"
        f"for typed in {[typed for typed, _ in _TYPED]}:\n"
        "    name, *sys.argv[1:] = typed.split()\n"
        "    command = importlib.import_module(f'launch.{name}')\n"
        "    try:\n"
        "        with flagsaver.flagsaver():\n"
        "            command_line.flags.FLAGS.unparse_flags()\n"
        "            command_line.run(command.main, command._SECTIONS)\n"
        "    except SystemExit as exit_: print(exit_.code, file=sys.stderr)\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert ended.stdout == "[]\n", ended.stderr
    answers = ended.stderr.split("2\n")
    assert len(answers) == len(_TYPED) + 1
    for (typed, said), answer in zip(_TYPED, answers, strict=False):
        assert said in answer, (typed, answer)
        assert len(answer.splitlines()) in (1, 2)  # absl's sentences have a heading


@pytest.mark.parametrize("typed", ["1000000", "1e6", "1_000_000", "+1.0E6", "0.1e7"])
def test_a_whole_number_may_be_typed_as_a_multiple_of_a_power_of_ten(
    monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    _run(monkeypatch, SECTIONS, f"--test_number={typed}")
    assert flags.FLAGS.test_number == 1_000_000
    assert texts.value_of("batch_size", typed, int) == 1_000_000
    assert texts.value_of("hidden_sizes", f"{typed},2", tuple[int, ...]) == (1_000_000, 2)


def test_absls_way_to_begin_is_refused_where_it_would_break_tensorflow() -> None:
    program = (
        "import sys, absl.app\n"
        "from launch import train\n"
        "sys.argv = 'train --agent=r2d2 --env=catch --run_dir=/none/run'.split()\n"
        "absl.app.run(train.main)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("TensorFlow must be imported before absl.app.run begins")


def test_ctrl_c_ends_a_command_without_a_traceback() -> None:
    with pytest.raises(SystemExit, match="130"), command_line.ending():
        raise KeyboardInterrupt


def test_a_folder_that_cannot_be_written_is_a_sentence_and_other_errors_keep_their_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error: Exception = OSError(errno.EROFS, "Read-only file system", "/run/evaluations")

    def main(_: Sequence[str]) -> None:
        raise error

    monkeypatch.setattr(sys, "argv", ["command"])
    with pytest.raises(SystemExit, match="2"):
        command_line.run(main, SECTIONS)
    said = "/run/evaluations cannot be written: Read-only file system.\n"
    assert capsys.readouterr().err == said
    error = NotFiniteError("env gave the reward nan: rewards must be finite.")
    with pytest.raises(SystemExit, match="2"):
        command_line.run(main, SECTIONS)
    assert capsys.readouterr().err == f"{error}\n"
    error = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        command_line.run(main, SECTIONS)
    error = FileNotFoundError(errno.ENOENT, "No such file", "/run/logs")
    with pytest.raises(FileNotFoundError):
        command_line.run(main, SECTIONS)
