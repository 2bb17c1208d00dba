"""Results by their numbers, by the best measurement that all lines have, in few points."""

import html
import math
import os
import pathlib

import numpy as np
import pytest

from analysis.report import results, run
from analysis.report.page import Page
from environments import scores, suites
from run_folder import best, launches
from tests.analysis.report.made_up import LOG_SECONDS, STEPS, Folder, lines_of
from tests.analysis.report.pages import Section, section

PONG = scores.SCORES["atari:pong"]


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> Folder:
    return Folder(tmp_path / "run")


@pytest.fixture
def pong(tmp_path: pathlib.Path) -> Folder:
    folder = Folder(tmp_path / "pong", env="atari:pong")
    folder.act([-21.0] * 50 + [float(i % 2) for i in range(100)])
    return folder


def _summary(folder: Folder) -> dict[str, str]:
    return dict(section(results.summary, lines_of(folder)).tables[0][1:])


def test_a_run_says_how_it_ended(folder: Folder) -> None:
    def state(seconds_ago: float = 0.0) -> str:
        progress = folder.path / "nodes" / "progress.json"
        if progress.exists():
            told = progress.stat().st_mtime - seconds_ago
            os.utime(progress, (told, told))
        return _summary(folder)["state"]

    assert state() == "no node has reported yet"
    folder.progress(state="running", reason="")
    assert state() == "running"
    assert state(600) == "broke off"
    assert state(-3_600) == "broke off"  # and then the clock was set back
    (folder.path / "nodes" / "crash.txt").write_text("Traceback")
    assert state() == "a node crashed"
    folder.progress(state="running", reason="5 actor steps were reached")  # and then one crashed
    assert state(600) == "ended: 5 actor steps were reached"


def test_counts_are_the_last_that_were_logged(folder: Folder) -> None:
    folder.act([0.0, 1.0] * 90)
    folder.learn("r2d2", rows=170, loss=1.0)
    folder.log(
        "evaluator",
        [dict(learner_steps=i, episode_return=r) for i, r in ((1, 0.5), (2, 0.75), (3, 0.25))],
    )
    shown = {
        "actor steps": "180,000",
        "updates": "340",
        "time, h:mm": "0:30",
        "training episodes": "180",
        "training return, last 100": "0.5",
        "evaluated return, newest": "0.25",
        "evaluated return, best": "0.75",
        "update kept as the best": "–",
    }
    assert shown.items() <= _summary(folder).items()


def test_the_summary_knows_the_evaluations_that_the_page_lists(folder: Folder) -> None:
    folder.act([0.0])
    folder.log("evaluator", [dict(learner_steps=10, episode_return=0.25)])
    folder.evaluate("r2d2", 10, {"catch": [0.5, 1.0]})
    folder.evaluate("r2d2", 5, {"catch": [1.0, 0.8]})
    folder.evaluate("r2d2", 20, {"catch": [-1.0]}, epsilon=0.3)  # not as it is evaluated
    shown = _summary(folder)
    assert shown["evaluated return, newest"] == "0.75"
    assert shown["evaluated return, best"] == "0.9"
    best.write(folder.path / "checkpoints", "r2d2", best.Best(0.25, 10, 7, 1.0, []))
    assert _summary(folder)["update kept as the best"] == "10"


def test_games_are_told_in_units_of_human_play(tmp_path: pathlib.Path) -> None:
    one = Folder(tmp_path / "one", env="atari:boxing")  # a human's 12.1, random play's 0.1
    one.act([6.1])
    shown = _summary(one)
    assert shown["training return, last 100"] == "6.1 (50 %)"
    assert shown["evaluated return, newest"] == "–"
    several = Folder(tmp_path / "several", "popart", "atari:pong,atari:boxing")
    several.log("tasks", [dict(actor_steps=1, median_normalised=m) for m in (0.1, 0.25)])
    several.evaluate("popart", 3, {"atari:pong": [14.6], "atari:boxing": [6.1]})  # 100 % and 50 %
    shown = _summary(several)
    assert shown["training return, last 100"] == "25 % (median)"
    assert shown["evaluated return, newest"] == "75 % (median)"


def test_what_was_typed_is_shown_in_order(folder: Folder) -> None:
    def text() -> str:
        return section(results.commands, run.load([str(folder.path)])).text

    assert "They were not recorded." in text()
    launches.record(folder.path, ["--agent=r2d2", "--env=a<b"], actor_steps=0, walltime=0.0)
    launches.record(folder.path, ["--resume"], actor_steps=5_000, walltime=9.0)
    first, second = text().index("--env=a<b"), text().index("python -m launch.train --resume")
    assert first < text().index("from 5,000 actor steps") < second
    ran = launches.read(folder.path)[0]
    said = f"# recurrent-replay {ran.version}, commit {ran.commit}, on {ran.host}: {ran.processors}"
    assert text().count(said if ran.commit else said.replace(", commit ", "")) == 2


def _curves(*folders: Folder) -> Section:
    return section(results.curves, lines_of(*folders))


def test_a_run_is_drawn_against_steps_and_hours(folder: Folder) -> None:
    folder.act([float(i) for i in range(1_000)])
    folder.log("evaluator", [dict(actor_steps=5, walltime=7_200, episode_return=3.5)])
    drawn = _curves(folder).lines
    acted, evaluated = drawn["catch, by steps"]
    assert (acted.style, evaluated.style) == ("-", "o")  # a single evaluation is no line
    assert len(acted.x) == 100
    np.testing.assert_allclose(acted.x, STEPS * (acted.y + 1))
    assert (evaluated.x.tolist(), evaluated.y.tolist()) == ([5], [3.5])
    acted, evaluated = drawn["catch, by hours"]
    np.testing.assert_allclose(acted.x, LOG_SECONDS * (acted.y + 1) / 3_600)
    assert evaluated.x.tolist() == [2.0]
    # At least every ten seconds there is a mean.
    (folder.path / "logs" / "episodes.csv").unlink()
    assert _curves(folder).lines["catch, by steps"][0].y.mean() == pytest.approx(499.5)


def test_runs_share_the_figures_of_the_tasks_that_they_share(tmp_path: pathlib.Path) -> None:
    one, two = Folder(tmp_path / "one"), Folder(tmp_path / "two", "impala", "catch,memory:recall")
    for folder in (one, two):
        folder.act([1.0] * 20)
    drawn = _curves(one, two).lines
    assert [line.colour for line in drawn["catch, by steps"]] == [0, 1]
    assert [line.colour for line in drawn["memory:recall, by steps"]] == [1]


def test_an_agent_that_does_not_act_has_no_training_curve(tmp_path: pathlib.Path) -> None:
    folder = Folder(tmp_path / "run", "r2d2,impala", act_with="impala")
    folder.act([1.0] * 20)
    assert [line.colour for line in _curves(folder).lines["catch, by steps"]] == [1]


def test_a_whole_suite_is_drawn_together_and_game_by_game(tmp_path: pathlib.Path) -> None:
    folder = Folder(tmp_path / "run", "popart", "atari57")
    folder.act([1.0] * 20, actors=57)
    folder.log("tasks", [dict(actor_steps=i, walltime=i, median_normalised=i / 9) for i in (1, 2)])
    drawn = _curves(folder).lines
    together = [f"Median human-normalised return, by {axis}" for axis in ("steps", "hours")]
    # Each game by steps alone: the page would be twice as long.
    assert list(drawn) == [*together, *(f"{game}, by steps" for game in scores.ATARI57)]
    median, _ = drawn[together[0]]  # and a human's
    assert median.y.tolist() == pytest.approx([1 / 9, 2 / 9])


def test_many_tasks_without_human_scores_are_drawn_by_hours_too(tmp_path: pathlib.Path) -> None:
    names = [f"gym:CartPole-v{i}" for i in (0, 1)] + ["catch", "catch:large_rewards"]
    names += [f"memory:{name}" for name in ("recall", "cartpole")]
    folder = Folder(tmp_path / "run", "impala", ",".join(names))
    folder.act([1.0] * 20)
    with pytest.MonkeyPatch.context() as patched:
        for module in ("page", "results"):
            patched.setattr(f"analysis.report.{module}.MANY", 3)
        found = _curves(folder)
    assert list(found.lines) == [f"{n}, by {axis}" for n in names for axis in ("steps", "hours")]
    assert f"All {len(names)} tasks" in found.text


def test_a_hundred_thousand_episodes_weigh_no_more_than_a_thousand(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(0)
    sizes = []
    for count in (1_000, 120_000):
        folder = Folder(tmp_path / str(count))
        rows = enumerate(rng.normal(size=count).tolist())
        text = "".join(f"{i},{i / 2},{i % 32},catch,{value},9\n" for i, value in rows)
        header = "actor_steps,walltime,actor,task,episode_return,episode_length\n"
        (folder.path / "logs" / "episodes.csv").write_text(header + text)
        page = Page("title", tmp_path)
        results.curves(page, lines_of(folder))
        assert len(page.figures) == 2
        sizes.append(len(page.document()))
    assert sizes[1] < 1.1 * sizes[0] < 35_000


def test_before_the_first_episode_there_is_nothing_to_draw(folder: Folder) -> None:
    for of_lines in (results.curves, results.tasks):
        found = section(of_lines, lines_of(folder))
        assert "No episode has ended yet." in found.text
        assert not found.figures


def test_the_best_measurement_is_compared_that_all_have(
    pong: Folder, tmp_path: pathlib.Path
) -> None:
    def returns(*folders: Folder) -> tuple[str, list[float]]:
        source, found = results.returns(lines_of(*folders))
        return source, [of_line["atari:pong"] for of_line in found]

    trained = ("the last 100 training episodes", [0.5])
    assert returns(pong) == trained
    pong.log("evaluator", [dict(learner_steps=i, episode_return=r) for i, r in ((1, -5), (2, 7))])
    assert returns(pong) == ("the run's own newest evaluation", [7.0])
    pong.evaluate("r2d2", 30, {"atari:pong": [18.0, 20.0]})
    pong.evaluate("r2d2", 20, {"atari:pong": [0.0]})
    pong.evaluate("r2d2", 40, {"atari:pong": [1.0]}, epsilon=0.5)
    pong.evaluate("r2d2", 40, {"atari:pong": [2.0]}, memory_steps=1)
    assert returns(pong) == ("the newest launch.evaluate", [19.0])
    other = Folder(tmp_path / "other", env="atari:pong")
    other.act([3.0])
    assert returns(pong, other) == (trained[0], [0.5, 3.0])


def test_a_level_is_evaluated_on_its_twin(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suites, "check", lambda name: None)  # where the engine is
    twin, level = "dmlab:rooms_exploit_deferred_effects_test", "dmlab:explore_goal_locations_small"
    env = f"dmlab:rooms_exploit_deferred_effects_train,{level}"
    folder = Folder(tmp_path / "lab", "popart", env)
    folder.log("evaluator", [{"learner_steps": 1, f"return/{twin}": 5, f"return/{level}": 9}])
    assert results.returns(lines_of(folder))[1] == [{twin: 5.0, level: 9.0}]


def test_what_no_human_played_has_its_own_figure(pong: Folder, tmp_path: pathlib.Path) -> None:
    pong.evaluate("r2d2", 20, {"atari:pong": [(PONG["human"] + PONG["random"]) / 2]})
    found = section(results.tasks, lines_of(pong))
    assert found.tables[0][1][-1] == "50 %"
    assert found.figures == ["Human-normalised return"]
    both = Folder(tmp_path / "both", "impala", "catch,atari:pong")
    both.act([0.5])
    found = section(results.tasks, lines_of(both))
    assert found.figures == ["Human-normalised return", "Return"]
    alone = Folder(tmp_path / "alone")
    alone.act([0.5])
    found = section(results.tasks, lines_of(alone))
    assert (found.figures, found.tables[0][0]) == (["Return"], ["task", "alone: return"])


def test_games_are_sorted_by_the_first_lines_score(tmp_path: pathlib.Path) -> None:
    folder = Folder(tmp_path / "run", "popart", "catch,atari:pong,atari:boxing,atari:breakout")
    folder.act([-12.0])  # of pong; boxing -11, breakout -10: all the worse for a human
    _, *rows = section(results.tasks, lines_of(folder)).tables[0]
    assert [row[0] for row in rows] == ["atari:pong", "atari:breakout", "atari:boxing", "catch"]


def test_evaluations_have_intervals_unless_there_is_one_episode(pong: Folder) -> None:
    pong.evaluate("r2d2", 20, {"atari:pong": [1.0, 3.0, 5.0]})
    pong.evaluate("r2d2", 30, {"atari:pong": [math.pi]})
    runs = run.load([str(pong.path)])
    _, several, one = section(results.evaluations, runs).tables[0]
    assert several[:5] == ["r2d2-20", "20", "atari:pong", "3", "3"]
    low, _, high = several[5].partition(" to ")
    assert 1 <= float(low) < 3 < float(high) <= 5
    assert one[3:6] == ["1", "3.142", "–"]
    assert html.unescape(one[6]).endswith(" %")
