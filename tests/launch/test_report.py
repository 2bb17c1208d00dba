"""Whole pages: well-formed, whole in themselves, with every section and the run's numbers."""

import pathlib
import re
import urllib.parse
from typing import NamedTuple

import pytest

from analysis.report.page import FEW
from launch import report
from run_folder import launches
from tests.analysis.report import made_up_population
from tests.analysis.report.made_up import Folder
from tests.analysis.report.made_up_population import COST, RATE, Made
from tests.analysis.report.pages import Page
from tests.launch import typed

SECTIONS = (
    "Summary",
    "Learning curves",
    "Tasks",
    "Evaluations",
    "Throughput",
    "Replay",
    "Learner",
    "Settings",
    "Commands",
)


OF_POPULATION = (
    "Summary",
    "Scores",
    "Values",
    "Family tree",
    "Final scores",
    "Decisions",
    "Commands",
)


class Written(NamedTuple):
    """A page on disk."""

    folder: pathlib.Path
    text: str
    page: Page


def _read(folder: pathlib.Path) -> Written:
    text = (folder / "index.html").read_text()
    return Written(folder, text, Page(text))


def _popart(path: pathlib.Path) -> Folder:
    folder = Folder(path, "popart", "catch,catch:large_rewards")
    folder.act([0.25] * 30)
    names = [f"{name}/{task}" for name in ("mu", "sigma") for task in folder.settings.tasks]
    folder.learn("popart", rows=30, loss=1.0, **dict.fromkeys(names, 3.5))
    return folder


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = _popart(tmp_path_factory.mktemp("runs") / "a <b> & c")
    launches.record(folder.path, ["--agent=popart"], actor_steps=0, walltime=0.0)
    assert typed.run(report.main, f"--run_dir={folder.path}") == 0
    return _read(folder.path / "report")


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Written:
    path = tmp_path_factory.mktemp("runs")
    young = Folder(path / "young", seed=5)
    odd = Folder(path / "odd")
    odd.log("learner-r2d2", [dict(learner_steps=1, actor_steps=9, walltime=1, loss="nan")])
    odd.log("actor", [dict(actor_steps=9, walltime=1, learner_steps=1, episode_return="nan")])
    folders = [_popart(path / "popart").path, young.path, odd.path]
    assert typed.run(report.main, f"--run_dir={','.join(map(str, folders))}") == 0
    return _read(folders[0] / "report" / "comparison")


@pytest.fixture(scope="module")
def evolved(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = made_up_population.evolved(tmp_path_factory.mktemp("runs") / "a <b> & c").folder
    assert typed.run(report.main, f"--run_dir={folder.path}") == 0
    return _read(folder.report)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A population with a member of broken logs, and some of none."""
    made = Made(tmp_path_factory.mktemp("runs") / "many", 300)
    made.begin({RATE: [1e-4] * 300, COST: [0.5] * 300})
    for member in range(8):
        made.play(member, [member / 8, -1.0] * 5)
    made.play(8, [float("nan")] * 5)
    (made.play(9, [0.0] * 5).path / "logs" / "episodes.csv").write_text("actor_steps,task\n7")
    for member in range(2, 200):
        made.decide(member, 5_000, rival=member - 1, adopts=True)
    assert typed.run(report.main, f"--run_dir={made.folder.path}") == 0
    return _read(made.folder.report)


WRITTEN = pytest.mark.parametrize("written", ["one", "several", "evolved", "many"])


@WRITTEN
def test_every_section_is_there_and_linked(written: str, request: pytest.FixtureRequest) -> None:
    page = request.getfixturevalue(written).page
    titles = SECTIONS if written in ("one", "several") else OF_POPULATION
    assert [title for title in page.sections if title != "PopArt"] == list(titles)
    links = [value for tag, name, value in page.attributes if (tag, name) == ("a", "href")]
    assert len(links) == len(page.sections)
    assert {link.removeprefix("#") for link in links} <= set(page.ids)


@WRITTEN
def test_a_page_needs_nothing_else(written: str, request: pytest.FixtureRequest) -> None:
    text, page = request.getfixturevalue(written)[1:]
    assert "://" not in text
    assert "url(" not in text.replace("url(#", "")
    assert "@import" not in text
    for tag, name, value in page.attributes:
        assert tag not in ("script", "link", "img", "iframe", "object")
        if name in ("src", "href", "data", "srcset", "action"):
            leads = (tag, name) == ("a", "href") and value.endswith(".mp4")
            assert leads or value.startswith("#"), (tag, name, value)
    assert len(set(page.ids)) == len(page.ids)


@WRITTEN
def test_a_page_is_for_phones_and_for_the_dark(
    written: str, request: pytest.FixtureRequest
) -> None:
    text, page = request.getfixturevalue(written)[1:]
    assert ("meta", "content", "width=device-width, initial-scale=1") in page.attributes
    assert "@media (prefers-color-scheme: dark)" in text
    assert text.count("--line-9:") == 2  # a colour for each of the two
    tables = re.findall(r'<div class="scroll"><table( class="many")?>\n<thead>(.*?)</thead>', text)
    assert len(tables) == text.count("<table") > 3
    # Where a phone shows no columns, each cell has its name.
    assert [bool(many) for many, _ in tables] == [head.count("<th ") > FEW for _, head in tables]
    assert ("data-name=" in text) == any(many for many, _ in tables)


@WRITTEN
def test_every_figure_is_a_file_too(written: str, request: pytest.FixtureRequest) -> None:
    folder, _, page = request.getfixturevalue(written)
    files = list(folder.glob("*.png"))
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)
    figures = [name for section in page.sections.values() for name in section.figures]
    least = 8 if written in ("one", "several") else 4
    assert len(files) == len(figures) == len(set(figures)) > least


def test_a_runs_numbers_are_shown(one: Written) -> None:
    sections = one.page.sections
    assert ["actor steps", "30,000"] in sections["Summary"].tables[0]
    assert ["catch", "0.25"] in sections["Tasks"].tables[0]
    assert ["catch:large_rewards", "1.25"] in sections["Tasks"].tables[0]
    assert sections["Throughput"].tables[0][1][:5] == ["a <b> & c", "100", "100", "0.2", "0.2"]
    assert ["catch", "3.5", "3.5"] in sections["PopArt"].tables[0]
    assert ["num_actors", "256", "32"] in sections["Settings"].tables[0]
    assert "python -m launch.train --agent=popart" in sections["Commands"].text
    assert sections["Learner"].figures == ["loss"]
    assert "python -m launch.evaluate --run_dir=" in sections["Evaluations"].text


def test_runs_are_told_apart(several: Written) -> None:
    sections = several.page.sections
    assert sections["Summary"].tables[0][0] == ["", "popart", "young", "odd"]
    assert ["seed", "0", "5", "0"] in sections["Settings"].tables[0]
    assert "They were not recorded." in sections["Commands"].text
    for name in ("Learning curves", "Throughput", "Replay", "PopArt"):
        assert all(label in sections[name].text for label in ("popart", "young", "odd"))


def test_a_young_run_has_a_page(tmp_path: pathlib.Path) -> None:
    folder = Folder(tmp_path / "young")
    output = tmp_path / "elsewhere" / "page"
    assert typed.run(report.main, f"--run_dir={folder.path}", f"--output={output}") == 0
    written = _read(output)
    assert list(written.page.sections) == list(SECTIONS)
    assert not written.page.sections["Learning curves"].figures
    assert "No update has been logged yet." in written.page.sections["Learner"].text
    assert not (folder.path / "report").exists()


def test_a_page_of_many_members_is_small(many: Written) -> None:
    assert len(many.text) < 500_000
    assert "300 members and 10 colours" in many.page.sections["Scores"].text


def test_a_member_has_a_page_of_its_own(tmp_path: pathlib.Path) -> None:
    made = made_up_population.evolved(tmp_path)
    assert typed.run(report.main, f"--run_dir={made.folder.member(1).path}") == 0
    written = _read(made.folder.member(1).report)
    assert list(written.page.sections) == list(SECTIONS)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "--run_dir must be given: a run's folder, several with commas."),
        (["--run_dir=PATH/none"], "PATH/none holds no run: there is no PATH/none/config.json."),
        (["--run_dir=PATH/run,PATH/run"], "--run_dir names PATH/run twice."),
        (["--run_dir=gs://bucket/run"], "--run_dir=gs://bucket/run is in a bucket, and this"),
        (["--run_dir=PATH/run,"], "--run_dir must be folders with commas between them, got 'PATH"),
        (["--run_dir=PATH/run", "--output=PATH/file"], "--output=PATH/file cannot be written"),
        (["--run_dir=PATH/torn"], "PATH/torn/launches.jsonl cannot be read: of line 1, "),
        (["--run_dir=PATH/run", "--output="], "--output must name a folder, got ''."),
        (
            ["--run_dir=PATH/run,PATH/population"],
            "--run_dir names PATH/population, which holds a population, and others beside it: a "
            "page is of one population, or of runs.",
        ),
        (["--run_dir=PATH/damaged"], "PATH/damaged/decisions/00-0000.json cannot be read: "),
    ],
)
def test_what_cannot_be_shown_is_refused_in_a_sentence(
    argv: list[str], said: str, tmp_path: pathlib.Path
) -> None:
    Folder(tmp_path / "run")
    Folder(tmp_path / "torn")
    (tmp_path / "torn" / "launches.jsonl").write_text("torn\n")
    (tmp_path / "file").write_text("in the way")
    Made(tmp_path / "population")
    Made(tmp_path / "damaged").path(0, 0).write_text("{")
    told = typed.refused(report.main, *(arg.replace("PATH", str(tmp_path)) for arg in argv))
    assert told.startswith(said.replace("PATH", str(tmp_path)))


def test_the_page_is_found(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Folder(tmp_path / "runs" / "young")
    monkeypatch.chdir(tmp_path)
    assert typed.run(report.main, "--run_dir=runs/young/") == 0
    assert capsys.readouterr().out == "Report: runs/young/report/index.html\n"
    assert (tmp_path / "runs/young/report/index.html").exists()


@pytest.mark.parametrize("output", ["", "elsewhere/page"])
def test_films_are_linked_from_wherever_the_page_is(output: str, tmp_path: pathlib.Path) -> None:
    folders = [Folder(tmp_path / name) for name in ("one", "a <b> & c")]
    for folder in folders:
        folder.settings.folder.videos.mkdir()
        (folder.settings.folder.videos / "r2d2-6-catch 100%.mp4").touch()
    names = ",".join(str(folder.path) for folder in folders)
    where = [f"--output={tmp_path / output}"] if output else []
    assert typed.run(report.main, f"--run_dir={names}", *where) == 0
    written = _read(tmp_path / output if output else folders[0].path / "report" / "comparison")
    links = [value for tag, name, value in written.page.attributes if name == "href"]
    films = [urllib.parse.unquote(link) for link in links if link.endswith(".mp4")]
    assert len(films) == 2
    assert all((written.folder / film).exists() for film in films)
