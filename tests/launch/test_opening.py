"""Looking at a run folder runs no code that its writer named, unless that is wanted."""

import json
import os
import pathlib
import sys
import types

import pytest

import recurrent_replay
from environments import gym, import_path
from launch import diagnose, evaluate, export, report
from run_folder import settings
from run_folder.settings import SettingsError
from tests import extending
from tests.analysis.report.made_up import Folder
from tests.analysis.report.pages import Page
from tests.launch import typed

COMMANDS = {"diagnose": diagnose, "evaluate": evaluate, "export": export}
STRANGER = 12_345


@pytest.fixture
def ran(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A file that is there once a module `evil`, which is on PYTHONPATH, has been imported."""
    ran = tmp_path / "ran"
    code = f"open({str(ran)!r}, 'w').close()\nraise SystemExit('evil ran')\n"
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "evil.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path / "path")
    extending.forget("evil", monkeypatch)
    return ran


def _naming(path: pathlib.Path, **said: str) -> Folder:
    """A run whose config.json names code: of `env`, `agent` or `torso`."""
    folder = Folder(path)
    folder.act([0.5] * 3)
    folder.learn("r2d2", rows=3, loss=1.0)
    recorded = json.loads((path / "config.json").read_text())
    if "torso" in said:
        recorded["configs"]["r2d2"]["torso"] = said["torso"]
    if "agent" in said:
        name = said["agent"].partition(":")[2]
        recorded |= dict(agent=said["agent"], act_with=name, paced_by=name)
        recorded["configs"] = {name: {"length": 8, "sizes": [1, 2], "name": "any"}}
        (path / "logs" / "learner-r2d2.csv").rename(path / "logs" / f"learner-{name}.csv")
    recorded |= {name: value for name, value in said.items() if name == "env"}
    (path / "config.json").write_text(json.dumps(recorded))
    return folder


NAMING = pytest.mark.parametrize(
    "said",
    [
        dict(env="evil:make"),
        dict(env="catch,evil:make"),
        dict(env="gym:evil:Task-v0"),
        dict(agent="evil:Agent"),
        dict(torso="evil:Torso"),
    ],
    ids=str,
)


@NAMING
def test_a_report_imports_nothing_that_a_run_names(
    ran: pathlib.Path, tmp_path: pathlib.Path, said: dict[str, str]
) -> None:
    folder = _naming(tmp_path / "run", **said)
    assert typed.run(report.main, f"--run_dir={folder.path}") == 0
    assert not ran.exists()
    page = Page((folder.path / "report" / "index.html").read_text())
    assert page.sections["Learner"].figures == ["loss"]
    assert ["actor steps", "3,000"] in page.sections["Summary"].tables[0]
    assert not import_path.imports_nothing()


def _owned_by(monkeypatch: pytest.MonkeyPatch, owner: int, mode: int) -> None:
    """Has every folder and config.json belong to somebody, with a mode."""
    real = pathlib.Path.stat

    def stat(path: pathlib.Path, **how: bool) -> os.stat_result:
        found = real(path, **how)
        return os.stat_result((found.st_mode & ~0o777 | mode, *found[1:4], owner, *found[5:]))

    monkeypatch.setattr(pathlib.Path, "stat", stat)


@NAMING
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("owner", "mode", "why"),
    [
        (STRANGER, 0o755, f"belongs to user {STRANGER}, and you are user {os.geteuid()}"),
        (os.geteuid(), 0o757, "can be written by everybody"),
    ],
)
def test_what_another_user_can_have_written_is_not_imported(
    ran: pathlib.Path,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    said: dict[str, str],
    command: str,
    owner: int,
    mode: int,
    why: str,
) -> None:
    folder = _naming(tmp_path / "run", **said)
    with monkeypatch.context() as patched:
        _owned_by(patched, owner, mode)
        told = typed.refused(COMMANDS[command].main, f"--run_dir={folder.path}")
    assert not ran.exists()
    assert told == (
        f"{folder.path} {why}, and its config.json names code that would be run: evil from "
        f"{tmp_path / 'path' / 'evil.py'}. With --trust it is, once you have read it."
    )


def test_python_asks_for_the_same_trust(
    ran: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _naming(tmp_path / "run", agent="evil:Agent")
    with monkeypatch.context() as patched:
        _owned_by(patched, STRANGER, 0o755)
        with pytest.raises(SettingsError, match="names code that would be run: evil from"):
            recurrent_replay.open(folder.path)
        assert not ran.exists()
        with pytest.raises(SettingsError, match="importing 'evil' raises SystemExit: evil ran"):
            recurrent_replay.open(folder.path, trust=True)


@pytest.mark.parametrize("mine", [True, False])
def test_what_is_allowed_is_told_before_it_is_imported(
    ran: pathlib.Path,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mine: bool,
) -> None:
    folder = _naming(tmp_path / "run", agent="evil:Agent")
    with monkeypatch.context() as patched:
        _owned_by(patched, os.geteuid() if mine else STRANGER, 0o755)
        trust = [] if mine else ["--trust"]
        assert typed.run(evaluate.main, f"--run_dir={folder.path}", *trust) == 2
    assert ran.exists()
    first, second = capsys.readouterr().err.splitlines()
    assert first == (
        f"{folder.path}/config.json names code, which is imported: evil from "
        f"{tmp_path / 'path' / 'evil.py'}."
    )
    assert "importing 'evil' raises SystemExit: evil ran" in second


def test_a_run_that_names_no_code_is_anybodys(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(tmp_path / "run")
    with monkeypatch.context() as patched:
        _owned_by(patched, STRANGER, 0o755)
        said = typed.refused(evaluate.main, f"--run_dir={folder.path}")
    assert "holds no checkpoint of r2d2 yet" in said


def test_a_report_draws_what_ones_own_agent_says_of_its_columns_if_it_is_told_to(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(extending.write(tmp_path / "path"))
    folder = Folder(tmp_path / "run", extending.AGENT)
    folder.act([0.5] * 3)
    for trust, imported in (((), False), (("--trust",), True)):
        extending.forget("my_package", monkeypatch)
        assert typed.run(report.main, f"--run_dir={folder.path}", *trust) == 0
        assert ("my_package.agents" in sys.modules) == imported


def test_nothing_is_made_to_be_looked_at_where_nothing_is_imported() -> None:
    gym.forget("gym:CartPole-v1")
    with import_path.nothing_imported(), pytest.raises(ValueError, match="is not made to be"):
        gym.describe("gym:CartPole-v1")
    assert gym.describe("gym:CartPole-v1").frames_per_second == 50


def test_fields_of_an_agent_that_is_not_imported_must_be_fields(tmp_path: pathlib.Path) -> None:
    folder = _naming(tmp_path / "run", agent="evil:Agent")
    recorded = json.loads((folder.path / "config.json").read_text())
    for said in ([1], {"not a name": 1}, {"class": 1}, "text", 7):
        recorded["configs"] = {"Agent": said}
        (folder.path / "config.json").write_text(json.dumps(recorded))
        with import_path.nothing_imported(), pytest.raises(SettingsError, match="object of fields"):
            settings.load(folder.path)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_task_is_tried_in_a_process_of_its_own(
    command: types.ModuleType, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gym, "_known", known := dict[str, object]())
    folder = _naming(tmp_path / "run", env="os:abort")
    assert typed.run(command.main, f"--run_dir={folder.path}") == 2  # it has no checkpoint
    assert known["os:abort"] == "'os:abort' ended its process, with code -6, when it was tried."
