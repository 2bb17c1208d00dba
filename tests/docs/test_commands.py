"""Every command that a page tells a reader to type is accepted, and helps on one screen."""

import pathlib
import re
import shlex
import subprocess
from collections.abc import Iterable

import pytest

from benchmarks import performance
from tests import extending
from tests.commands import Commands, Outcome
from tests.docs import pages
from tests.docs.pages import ROOT, Words
from tests.rooms import imports

pytestmark = pytest.mark.repository

FAKES = ROOT / "tests" / "environments" / "dmlab" / "fakes"  # DeepMind Lab's module
LINES, COLUMNS = 45, 100
# A population takes for its members all that a run takes, and helps with what matters most.
PASSED_ON = {"launch.population": "launch.train"}
DEFINE_FLAGS = ("command_line.py", "measuring.py", "opening.py", "playing_flags.py")
# Flags of launch.command_line.
SHARED = {"AGENT": "agent", "RUN_DIR": "run_dir", "SEED": "seed", "JOB": "job"}


def _modules() -> list[str]:
    """The modules of the tree that are commands."""
    rooms = ("launch", "benchmarks")
    files = [file for room in rooms for file in (ROOT / room).glob("*.py")]
    return sorted(
        f"{file.parent.name}.{file.stem}"
        for file in files
        if '\nif __name__ == "__main__":' in file.read_text()
    )


def _made_by(arguments: Words) -> list[str]:
    """The lines that make would run."""
    make = ["make", "--dry-run", "--always-make", "--no-print-directory", *arguments]
    return subprocess.run(
        make, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()


@pytest.fixture(scope="module")
def on_pages() -> list[tuple[str, Words]]:
    """Every command with the name of its page."""
    return [(p.name, words) for p in pages.PAGES for words in pages.commands(p.read_text())]


@pytest.fixture(scope="module")
def written(on_pages: list[tuple[str, Words]]) -> dict[Words, str]:
    """Modules with their arguments, as `python -m` or make runs them -> the page."""
    found = {}
    for page, (program, *arguments) in on_pages:
        if program == "python":
            found[tuple(arguments[1:])] = page
        elif arguments[0] == "train":
            (line,) = (line for line in _made_by(tuple(arguments)) if "-m launch.train" in line)
            found[tuple(shlex.split(line.partition(" -m ")[2]))] = page
    for row in performance.rows():
        found[tuple(shlex.split(f"benchmarks.{row.command}"))] = "performance.md"
    return found


_TAKES_MORE = re.compile(r"=(rwrl|control-pixels):|--device=gpu")
_MISSING = re.compile(
    r"needs (realworldrl_suite, which is not installed here|a renderer, but|a GPU that TensorFlow)"
)

REFUSED: dict[Words, str] = {
    ("launch.train", "--agent=r2d2", "--env=atari:pung", "--run_dir=x"): "atari:pong",
    (
        "launch.train",
        "--agent=r2d2",
        "--env=catch",
        "--run_dir=x",
        "--r2d2.lengt=3",
    ): "--r2d2.length?",
    ("launch.evaluate", "--run_dir=x", "--episode=3"): "episodes",
    ("benchmarks.learner", "--agent=r2d2", "--peer=torch"): "pytorch",
    ("benchmarks.plot", "run", "runs/pong", "plot.png"): "title",
}


@pytest.mark.parametrize("words", REFUSED)
def test_a_command_that_cannot_be_is_found(commands: Commands, words: Words) -> None:
    outcome = commands.run(*words, stop=True)
    assert (outcome.code, outcome.began) == (2, False)
    assert REFUSED[words] in outcome.err


def test_every_command_of_the_pages_is_accepted(
    commands: Commands, written: dict[Words, str], tmp_path: pathlib.Path
) -> None:
    path = [str(FAKES), str(extending.write(tmp_path))]
    assert {module for module, *_ in written} > {"launch.train", "launch.evaluate"}
    for words, page in written.items():
        outcome = commands.run(*words, stop=True, path=path)
        if _TAKES_MORE.search(shlex.join(words)) and _MISSING.search(outcome.err):
            continue  # which is nothing that `make` installs
        helped = any(word.startswith("--help") for word in words) and outcome.out
        assert outcome.code == 0, f"{page}: {shlex.join(words)}: {outcome.err}"
        assert outcome.began or helped, f"{page}: {shlex.join(words)} did nothing."


def test_every_target_of_the_pages_is_one_that_make_helps_with(
    on_pages: list[tuple[str, Words]],
) -> None:
    helped = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    known = {"help", *re.findall(r"[\w-]+", helped.stdout)}
    for page, (program, *arguments) in on_pages:
        if program == "make":
            assert arguments[0] in known, f"{page}: make {arguments[0]}"
            assert _made_by(tuple(arguments)), f"{page}: make {arguments[0]}"


def _shown(outcome: Outcome) -> set[str]:
    return set(re.findall(r"(?:^  |=, )--(?:\[no\])?(\w+)", outcome.out, re.MULTILINE))


def _read(module: str) -> set[str]:
    """The flags that a command reads among the flags that all commands share."""
    file = pathlib.Path(*module.split(".")).with_suffix(".py")
    sources = _texts([file, *(i for i in imports(ROOT, file) if i.name in DEFINE_FLAGS)])
    return {flag for name, flag in SHARED.items() if f"command_line.{name}" in sources}


def _texts(files: Iterable[pathlib.Path]) -> str:
    return "".join((ROOT / file).read_text() for file in files)


@pytest.mark.parametrize("module", _modules())
def test_help_is_one_screen(commands: Commands, module: str) -> None:
    outcome = commands.run(module, "--help", stop=True)
    assert (outcome.code, outcome.began) == (0, False), outcome.err
    lines = outcome.out.splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= COLUMNS, max(lines, key=len)
    if outcome.flags:
        own = {*outcome.flags} - {*SHARED.values()} | _read(module)
        others = PASSED_ON.get(module)
        passed_on = _shown(commands.run(others, "--help", stop=True)) if others else set()
        assert _shown(outcome) - passed_on == own - passed_on | ({"helpfull"} - passed_on)
    else:
        assert lines[0].startswith("usage: ")
