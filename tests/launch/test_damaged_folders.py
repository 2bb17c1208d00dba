"""A command that reads a run folder reads it, or says which file is damaged, and how."""

import pathlib
import shutil
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from analysis import diagnosis
from analysis.report import charts, pages
from analysis.report.page import Page
from launch.local import view
from population import scores
from run_folder import checkpoints, launches, resuming, rewinding, settings
from run_folder.layout import RunFolder
from run_folder.settings import SettingsError
from tests.analysis.report.made_up import Folder
from tests.run_folder.manifests import MANIFEST

AGENT = "r2d2"
LOGS = ("actor", "episodes", "evaluator", f"learner-{AGENT}")
FILES = {
    **{f"logs/{label}.csv": "line 1" for label in LOGS},
    f"evaluations/{AGENT}-6.csv": "line ",
    "launches.jsonl": "line ",
    "config.json": "",
    "nodes/progress.json": "",
}
"""By name, how a sentence tells the place in it."""


def _report(path: pathlib.Path) -> None:
    pages.of_folders([str(path)]).document()


def _diagnose(path: pathlib.Path) -> None:
    diagnosis.read_lags(settings.load(path), AGENT, 10)


def _resume(path: pathlib.Path) -> None:
    run = settings.load(path)
    resuming.check_logs(run)
    launches.record(path, ["--resume"], actor_steps=0, walltime=0.0)
    rewinding.rewind(run.folder, {AGENT: MANIFEST}, AGENT)
    view.earlier(run.folder)


def _score(path: pathlib.Path) -> None:
    scores.last_logged(RunFolder(path))
    scores.score(RunFolder(path), ["catch"])


COMMANDS = (_report, _diagnose, _resume, _score)

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda held: held,
    "emptied": lambda held: b"",
    "cut in a line": lambda held: held[: len(held) // 2],
    "cut in the first line": lambda held: held[:5],
    "zeros at its end, as a power cut leaves": lambda held: held + bytes(4_096),
    "zeros instead": lambda held: bytes(len(held)),
    "a zero in the first line": lambda held: held[:3] + b"\0" + held[3:],
    "a zero in a line": lambda held: held[:-9] + b"\0" + held[-9:],
    "no text": lambda held: held[:-9] + b"\xff\xfe" + held[-9:],
    "another first line": lambda held: b"a,b,c\n" + held.partition(b"\n")[2],
    "no first line": lambda held: held.partition(b"\n")[2],
    "a column missing": lambda held: b"".join(
        line.partition(b",")[2] for line in held.splitlines(keepends=True)
    ),
    "a column twice": lambda held: b"".join(
        line.partition(b",")[0] + b"," + line for line in held.splitlines(keepends=True)
    ),
    "words for numbers": lambda held: held.replace(b"0", b"naught"),
    "infinite": lambda held: held.replace(b"0", b"9" * 400),
    "negative": lambda held: held.replace(b"1", b"-1"),
    "a quote without end": lambda held: held[:9] + b'"' + held[9:] * 2_000,
    "another file": lambda held: b"<html>\n" * 9,
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A run that has each of the files."""
    folder = Folder(tmp_path_factory.mktemp("runs") / "whole", AGENT)
    folder.act([0.0, 1.0, -1.0] * 5)
    folder.learn(AGENT, 9, loss=0.5)
    counts = dict(learner_steps=2, actor_steps=900, walltime=5.0)
    folder.log("evaluator", [dict(counts, episode_return=0.5)] * 2)
    folder.evaluate(AGENT, 6, {"catch": [1.0, -1.0, 1.0]})
    folder.progress(reason="enough", state="finished")
    for _ in range(2):
        launches.record(folder.path, ["--agent=r2d2"], actor_steps=0, walltime=0.0)
    return folder.path


@pytest.fixture
def _nothing_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    for chart in ("curves", "bars", "lanes"):
        monkeypatch.setattr(charts, chart, lambda *_, **__: [])
    monkeypatch.setattr(Page, "grid", lambda *_, **__: None)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("damaged")


def _said(
    whole: pathlib.Path, scratch: pathlib.Path, file: str, damage: Callable[[bytes], bytes]
) -> dict[str, str]:
    """The sentence of each command on a folder with a damaged file; "" from one that reads it.

    An error that tells neither the file nor the place in it is raised.
    """
    said = {}
    for command in COMMANDS:
        path = scratch / "run"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(whole, path)
        (path / file).write_bytes(damage((path / file).read_bytes()))
        said[command.__name__] = sentence = _sentence(command, path)
        if sentence:
            assert str(path / file) in sentence
            assert "neither logged" in sentence or FILES[file] in sentence
    return said


def _sentence(command: Callable[[pathlib.Path], None], path: pathlib.Path) -> str:
    try:
        command(path)
    except (SettingsError, checkpoints.CheckpointError) as error:
        return str(error)
    return ""


@pytest.mark.usefixtures("_nothing_is_drawn")
@pytest.mark.parametrize("file", FILES)
def test_a_damaged_file_is_read_or_named(
    file: str, whole: pathlib.Path, scratch: pathlib.Path
) -> None:
    said = {name: _said(whole, scratch, file, damage) for name, damage in DAMAGES.items()}
    assert not any(said["nothing"].values())
    if file.endswith(".csv"):
        told = said["another first line"]
        assert told["_report"].startswith(str(scratch / "run" / file))
        assert told["_resume"] == (told["_report"] if file.startswith("logs") else "")


@pytest.mark.usefixtures("_nothing_is_drawn")
@pytest.mark.parametrize("file", FILES)
@hypothesis_settings(max_examples=10)
@given(place=st.integers(0, 400), instead=st.binary(max_size=12), length=st.integers(0, 40))
def test_bytes_in_the_place_of_others_break_nobody(
    file: str, whole: pathlib.Path, scratch: pathlib.Path, place: int, instead: bytes, length: int
) -> None:
    _said(whole, scratch, file, lambda held: held[:place] + instead + held[place + length :])


@pytest.mark.parametrize("damage", ["infinite", "negative"])
def test_odd_numbers_are_drawn(damage: str, whole: pathlib.Path, tmp_path: pathlib.Path) -> None:
    shutil.copytree(whole, tmp_path / "run")
    for label in LOGS:
        path = RunFolder(tmp_path / "run").log(label)
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
    _report(tmp_path / "run")
