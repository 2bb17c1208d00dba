"""The console command, and the sentences about an installation that is not whole."""

import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

import recurrent_replay
from launch.gcp import images

pytestmark = pytest.mark.repository

ROOT = pathlib.Path(__file__).resolve().parents[1]
COLUMNS = 80


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    recurrent_replay._why_not.cache_clear()
    yield
    recurrent_replay._why_not.cache_clear()


def _run(*arguments: str, folder: pathlib.Path, **variables: str) -> subprocess.CompletedProcess:
    """A new interpreter without what this one has installed, but for the standard library."""
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False
    )


def _command(*arguments: str, folder: pathlib.Path) -> subprocess.CompletedProcess:
    return _run(str(ROOT / "recurrent_replay.py"), *arguments, folder=folder)


def test_alone_it_lists_the_commands_on_a_terminals_width(tmp_path: pathlib.Path) -> None:
    done = _command(folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    listed = re.findall(r"^  (\w+)  +\S", done.stdout, re.MULTILINE)
    assert {"train", "evaluate", "report", "diagnose", "population", "node"} <= set(listed)
    for name in listed:
        assert (ROOT / "launch" / f"{name}.py").is_file()
    assert max(map(len, done.stdout.splitlines())) <= COLUMNS


@pytest.mark.parametrize("installed", ["", "0.0.7"])
def test_the_version_is_that_of_the_sources_or_else_of_the_installation(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: pathlib.Path,
    installed: str,
) -> None:
    version = re.findall('^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    monkeypatch.setattr(recurrent_replay, "_version", lambda name: installed)
    monkeypatch.setattr(sys, "argv", ["recurrent-replay", "--version"])
    if installed:
        monkeypatch.setattr(recurrent_replay, "_HERE", tmp_path)
    recurrent_replay.main()
    assert capsys.readouterr().out == f"recurrent-replay {installed or version[0]}\n"


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("trian", "There is no command 'trian': did you mean 'train'?\n"),
        ("Train", "There is no command 'Train': did you mean 'train'?\n"),
        ("--agent=r2d2", "There is no command '--agent=r2d2': there are cluster, diagnose, "),
    ],
)
def test_a_misspelt_command_is_answered_without_an_import(
    tmp_path: pathlib.Path, typed: str, answer: str
) -> None:
    # Without packages to import, TensorFlow, which takes four seconds, not among them.
    done = _run("-S", str(ROOT / "recurrent_replay.py"), typed, folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(answer)


@pytest.fixture
def own(tmp_path: pathlib.Path) -> pathlib.Path:
    """A project of somebody's that has agents of its own."""
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "__init__.py").touch()
    return tmp_path


def test_a_command_does_what_python_m_does(own: pathlib.Path) -> None:
    """Packages in the working directory do not matter."""
    flags = ["--agent=r2d2", "--env=atari:pung", "--run_dir=x"]
    done = _command("train", *flags, folder=own)
    assert done.returncode == 2
    assert "did you mean atari:pong?" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["-m", "launch.train", "--agent=r2d2"], 2), (["-c", "import r2d2.agent"], 1)],
)
def test_two_packages_of_one_name_are_named_with_their_places(
    own: pathlib.Path, arguments: list[str], code: int
) -> None:
    done = _run(*arguments, folder=own, PYTHONPATH=str(ROOT))
    assert done.returncode == code
    line = done.stderr.splitlines()[-1]
    assert "Two packages are named 'agents'" in line
    assert str(ROOT / "agents") in line
    assert str(own / "agents") in line
    assert ("Traceback" in done.stderr) == (code == 1)


def test_launchpads_own_courier_is_told_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    init = tmp_path / "courier" / "__init__.py"
    init.parent.mkdir()
    init.write_text("from ctypes import cdll")
    monkeypatch.delitem(sys.modules, "courier", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    said = recurrent_replay._clash()
    assert said.startswith(f"Launchpad's own {init.parent} is found before recurrent-replay's")
    monkeypatch.setattr(recurrent_replay, "_HERE", tmp_path)
    said = recurrent_replay._clash()
    assert said.startswith(f"Launchpad was installed over recurrent-replay's {init.parent}: ")


@pytest.mark.parametrize(
    ("typed", "path", "said"),
    [
        (["ENV/bin/recurrent-replay", "train"], "ENV/bin", "recurrent-replay report"),
        (["ENV/bin/recurrent-replay", "train"], "/bin", "ENV/bin/recurrent-replay report"),
        (["recurrent_replay.py", "train"], "/bin", ".venv/bin/python recurrent_replay.py report"),
        (["-m", "launch.train"], "HERE/.venv/bin", "python -m launch.report"),
        (["-m", "launch.train"], "ENV/bin", ".venv/bin/python -m launch.report"),
    ],
)
def test_what_to_type_next_is_typed_as_this_was_by_the_same_python(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, typed: list[str], path: str, said: str
) -> None:
    here, env = tmp_path / "here", tmp_path / "a b"
    for folder in (here / ".venv", env):
        for name in ("python", "recurrent-replay"):
            (folder / "bin" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "bin" / name).touch(mode=0o755)

    def placed(text: str) -> str:
        return text.replace("HERE", str(here)).replace("ENV", str(env))

    monkeypatch.chdir(here)
    monkeypatch.setenv("PATH", placed(path))
    monkeypatch.setattr(sys, "executable", str(here / ".venv" / "bin" / "python"))
    monkeypatch.setattr(sys, "orig_argv", ["python", *map(placed, typed)])
    quoted = shlex.quote(str(env / "bin" / "recurrent-replay"))
    assert recurrent_replay.command("report") == said.replace("ENV/bin/recurrent-replay", quoted)


@pytest.mark.parametrize(
    ("made", "instead"),
    [
        (["Makefile", ".venv/.installed"], ".venv/bin/python is one, and ready."),
        (["Makefile"], "`make setup` in HERE finds one and installs what is needed."),
        ([], "Install it with one: docs/installing.md."),
    ],
)
def test_another_python_is_told_which_one_it_takes_and_which_is_ready(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, made: list[str], instead: str
) -> None:
    (tmp_path / ".venv").mkdir()
    for name in made:
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(recurrent_replay, "_HERE", tmp_path)
    monkeypatch.setattr(platform, "python_version", lambda: "3.12.2")
    assert recurrent_replay._why_not() == (
        f"recurrent-replay cannot run with {sys.executable}, which is CPython 3.12.2: it takes "
        f"CPython 3.11 or CPython 3.10, as Reverb has no build for another. {instead}".replace(
            "HERE", str(tmp_path)
        )
    )


def test_a_group_is_added_by_make_in_a_checkout_and_from_the_lock_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    pip = f"{sys.executable} -m pip install --no-deps -r"
    monkeypatch.setattr(recurrent_replay, "_HERE", tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    assert recurrent_replay.addition("some") == f"{pip} requirements-some.lock"
    (lock := tmp_path / "requirements-some.lock").touch()
    assert recurrent_replay.addition("some") == f"{pip} {lock}"
    (tmp_path / "Makefile").touch()
    assert recurrent_replay.addition("some") == "make setup-some"
    monkeypatch.setattr(sys, "prefix", "/env")
    assert recurrent_replay.addition("some") == f"{pip} {lock}"
    (odd := tmp_path / "a b").mkdir()
    (odd / "requirements-some.lock").touch()
    monkeypatch.setattr(recurrent_replay, "_HERE", odd)
    monkeypatch.setattr(sys, "executable", "/my env/python")
    typed = f"'/my env/python' -m pip install --no-deps -r '{odd}/requirements-some.lock'"
    assert recurrent_replay.addition("some") == typed


def _installed(monkeypatch: pytest.MonkeyPatch, **changed: str) -> str:
    """The complaint where other versions are installed; an empty one is none."""
    real = recurrent_replay._version
    names = {name.replace("_", "-"): version for name, version in changed.items()}
    monkeypatch.setattr(recurrent_replay, "_version", lambda name: names.get(name, real(name)))
    return recurrent_replay._why_not()


def test_this_environment_is_whole() -> None:
    assert recurrent_replay._why_not() == ""
    recurrent_replay.check()


def test_what_is_missing_is_named_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = _installed(monkeypatch, tensorflow_cpu="", tensorflow="", dm_sonnet="")
    assert "TensorFlow and dm-sonnet are missing" in said
    assert f"{sys.executable} -m pip install --no-deps -r {ROOT / 'requirements.lock'}\n" in said
    assert f"--only-binary :all: -r {ROOT / 'requirements-launchpad.lock'}\n" in said
    with pytest.raises(recurrent_replay.InstallationError, match="dm-sonnet are missing"):
        recurrent_replay.check()


def test_another_version_and_a_second_launchpad_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    said = _installed(monkeypatch, dm_reverb="0.11.0", dm_launchpad="0.5.0")
    assert "dm-reverb is 0.11.0 and not 0.14.0" in said
    assert "dm-launchpad and dm-launchpad-nightly are two Launchpads in one folder" in said
    assert "pip uninstall --yes dm-launchpad dm-launchpad-nightly && " in said


def test_sources_without_a_lock_compare_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster's host gets them from one where all was compared."""
    shutil.copy(ROOT / "recurrent_replay.py", tmp_path)
    script = "import recurrent_replay; recurrent_replay.check(); print('fine')"
    done = _run("-S", "-c", script, folder=tmp_path, PYTHONPATH=str(tmp_path))
    assert done.stdout == "fine\n", done.stderr


def test_the_dockerfile_is_made_like_the_images_of_hosts() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert f"FROM {images.BASE}\nARG LOCK={images.LOCK}\n" in text
    assert images.DRIVER in text
    installs = text.partition("RUN sed")[2].partition("\nCOPY")[0].replace("$LOCK", images.LOCK)
    hosts = images.dockerfile("workerpool0", "us-central1", images.LOCK)
    theirs = hosts.partition("RUN sed")[2].partition("\nCOPY")[0]
    both = [" ".join(text.split()).replace("\\ -r", "-r") for text in (theirs, installs)]
    assert both[0].replace(f" -r {images.GCP_LOCK}", "") == both[1]
