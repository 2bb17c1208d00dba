"""Set-up: the locks, the search for an interpreter, and what make decides."""

import itertools
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import tomli
from packaging.requirements import Requirement

pytestmark = pytest.mark.repository

ROOT = Path(__file__).resolve().parents[1]
LOCKS = {"cpu": "requirements.lock", "gpu": "requirements-gpu.lock"}
ADDED = {
    name: f"requirements-{name}.lock"
    for name in ("launchpad", "gcp", "control", "suites", "wandb", "docs")
}
FEWEST = {
    LOCKS["cpu"]: 50,
    LOCKS["gpu"]: 50,
    ADDED["launchpad"]: 0,
    ADDED["gcp"]: 50,
    ADDED["control"]: 10,
    ADDED["suites"]: 1,
    ADDED["wandb"]: 10,
    ADDED["docs"]: 40,
}


def _entries(lock: str) -> dict[str, tuple[str, list[str]]]:
    """Each distribution of a lock with its version and its hashes."""
    text = (ROOT / lock).read_text().replace("\\\n", " ")
    entries = {}
    for line in text.splitlines():
        requirement, *hashes = line.split()
        name, version = requirement.split("==")
        entries[name] = (version, hashes)
    return entries


def _is_tensorflow_or_cuda(name: str) -> bool:
    return name in ("tensorflow", "tensorflow-cpu") or name.startswith("nvidia-")


def _run(command: list[str], folder: Path, path: Path, **variables: str) -> tuple[int, str, str]:
    """Runs a command that sees nothing of this machine but `path` and the given variables."""
    environment = {"PATH": str(path), "HOME": str(folder / "home"), **variables}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def _script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A PATH on which there is make and a shell, and no Python."""
    (tmp_path / "tools").mkdir()
    for tool in ("sh", "sed", "touch", "test", "make"):
        (tmp_path / "tools" / tool).symlink_to(shutil.which(tool) or f"/missing/{tool}")
    return tmp_path / "tools"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files that set-up reads, in a folder without an environment."""
    folder = tmp_path / "clone"
    (folder / "scripts").mkdir(parents=True)
    for name in (
        "Makefile",
        "pyproject.toml",
        "scripts/find_python.sh",
        *LOCKS.values(),
        *ADDED.values(),
    ):
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.mark.parametrize("lock", [*LOCKS.values(), *ADDED.values()])
def test_every_line_is_pinned_and_hashed_and_names_no_registry(lock: str) -> None:
    entries = _entries(lock)
    assert len(entries) > FEWEST[lock]
    for name, (version, hashes) in entries.items():
        assert re.fullmatch(r"[0-9][\w.+!]*", version), name
        assert hashes, name
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", item) for item in hashes), name
    assert "://" not in (ROOT / lock).read_text()


def test_the_locks_differ_in_tensorflow_and_cuda_only() -> None:
    cpu, gpu = _entries(LOCKS["cpu"]), _entries(LOCKS["gpu"])
    different = {name for name in cpu | gpu if cpu.get(name) != gpu.get(name)}
    assert all(_is_tensorflow_or_cuda(name) for name in different), different
    assert cpu["tensorflow-cpu"][0] == gpu["tensorflow"][0]
    assert "nvidia-cudnn-cu12" in different


def test_what_is_added_is_in_neither_of_the_two_and_twice_the_same() -> None:
    basis = _entries(LOCKS["cpu"]).keys() | _entries(LOCKS["gpu"]).keys()
    added = [_entries(lock) for lock in ADDED.values()]
    assert not any(basis & one.keys() for one in added)
    for one, other in itertools.combinations(added, 2):
        assert all(one[name] == other[name] for name in one.keys() & other.keys())


@pytest.mark.parametrize("group", [*LOCKS, *ADDED])
def test_each_lock_holds_what_pyproject_asks_for(group: str) -> None:
    project = tomli.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    lock = {**LOCKS, **ADDED}[group]
    others = (*project["project"]["dependencies"], *groups["dev"]) if group in LOCKS else ()
    entries = _entries(lock)
    for text in (*groups[group], *others):
        wanted = Requirement(text)
        assert wanted.name in entries, f"{wanted} is not in {lock}: run `make lock`."
        assert entries[wanted.name][0] in wanted.specifier


@pytest.mark.parametrize(
    ("place", "variables"),
    [
        ("tools/python3.11", {}),
        ("tools/python3.10", {}),
        ("home/.pyenv/versions/3.11.7/bin/python3.11", {}),
        ("elsewhere/versions/3.10.9/bin/python3.10", {"PYENV_ROOT": "elsewhere"}),
        ("home/.local/share/uv/python/cpython-3.11.19-linux/bin/python3.11", {}),
    ],
)
def test_an_interpreter_is_found_wherever_it_is(
    tmp_path: Path, tools: Path, place: str, variables: Mapping[str, str]
) -> None:
    _script(tmp_path / place, "exit 0\n")
    if place.endswith("3.11"):  # the later one is taken
        _script(tools / "python3.10", "exit 0\n")
    if not place.startswith("tools"):  # pyenv's shim: on PATH, but it answers with an error
        _script(tools / "python3.11", "echo 'pyenv: python3.11: command not found' >&2; exit 127\n")
    absolute = {name: str(tmp_path / value) for name, value in variables.items()}
    command = [str(ROOT / "scripts/find_python.sh")]
    assert _run(command, tmp_path, tools, **absolute) == (0, f"{tmp_path / place}\n", "")


def test_without_an_interpreter_one_sentence_says_how_to_get_it(clone: Path, tools: Path) -> None:
    _script(tools / "python3.10", "exit 1\n")
    code, _, errors = _run(["make", "LOCK=requirements.lock", "setup"], clone, tools)
    assert code != 0
    sentence = errors.splitlines()[0]
    assert sentence.startswith("No CPython 3.11 or 3.10")
    assert "pyenv install 3.11" in sentence
    assert not (clone / ".venv").exists()


def test_an_environment_that_was_cut_short_is_made_anew(
    clone: Path, tools: Path, tmp_path: Path
) -> None:
    """Its interpreter is there first, and pip comes last."""
    _script(clone / ".venv/bin/python", "exit 1\n")
    _script(tools / "python3.11", f'echo "$@" >> {shlex.quote(str(tmp_path / "asked"))}\n')
    code, _, _ = _run(["make", "LOCK=requirements.lock", "setup"], clone, tools)
    assert code != 0  # as nothing is installed by such an interpreter
    assert "-m venv .venv\n" in (tmp_path / "asked").read_text()


def test_a_second_set_up_runs_nothing(clone: Path, tools: Path) -> None:
    (clone / ".venv").mkdir()

    def set_age(name: str, days: int) -> None:
        (clone / name).touch()
        os.utime(clone / name, (0, 1_700_000_000 - 86_400 * days))

    for name in ("requirements.lock", "requirements-launchpad.lock", "pyproject.toml"):
        set_age(name, days=9)
    set_age(".venv/.dependencies", days=6)
    set_age(".venv/.installed", days=3)
    code, output, errors = _run(["make", "LOCK=requirements.lock", "setup"], clone, tools)
    assert (code, errors) == (0, "")
    assert "Nothing to be done" in output
    set_age("requirements.lock", days=1)
    assert _run(["make", "LOCK=requirements.lock", "setup"], clone, tools)[0] != 0


@pytest.mark.parametrize(("answer", "lock"), [(0, LOCKS["gpu"]), (9, LOCKS["cpu"])])
def test_the_lock_follows_the_machine(clone: Path, tools: Path, answer: int, lock: str) -> None:
    _script(tools / "nvidia-smi", f"echo 'it reports its failures here too'; exit {answer}\n")
    code, output, _ = _run(["make", "--dry-run", "train"], clone, tools)
    assert code == 0
    assert f"--no-build-isolation --use-pep517 -r {lock}" in output


def test_train_passes_its_arguments_on(clone: Path, tools: Path) -> None:
    arguments = "--max_actor_steps=20000 --run_dir=runs/other"  # of two, absl takes the last
    code, output, _ = _run(["make", "--dry-run", "train", f"ARGS={arguments}"], clone, tools)
    assert code == 0
    own = "--agent=r2d2 --env=atari:pong --run_dir=runs/pong"
    assert f"-m launch.train {own} {arguments}\n" in output


def test_make_test_all_runs_every_test_once(clone: Path, tools: Path) -> None:
    code, output, _ = _run(["make", "--dry-run", "test-all"], clone, tools)
    assert code == 0
    found = [line.partition("-m pytest ")[2] for line in output.splitlines() if "pytest " in line]
    suite, rest = (shlex.split(arguments) for arguments in found if arguments)
    assert suite[:-2] == rest[:-2]
    assert (suite[-2:], rest[-2:]) == (["-m", "not slow"], ["-m", "slow"])


@pytest.mark.parametrize("script", [".ci/run", "scripts/find_python.sh", "tools/bazel"])
def test_scripts_are_executable_and_parse(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
    shell = (ROOT / script).read_text().splitlines()[0].removeprefix("#!").split()
    subprocess.run([*shell, "-n", str(ROOT / script)], check=True)
