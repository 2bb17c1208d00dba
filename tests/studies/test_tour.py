"""The pictures of the tour are of the run that is named."""

import json
import pathlib

from studies import tour
from tests.run_folder import saved_runs


def test_the_pictures_are_the_view_and_the_reports_figures(tmp_path: pathlib.Path) -> None:
    run = saved_runs.save(tmp_path / "runs" / "catch")
    state = dict(
        reason="60,000 actor steps were reached",
        counts=dict(actor_steps=60_000, episodes=90, walltime=61.0, environments_lost=0),
        limits={},
        acting=[32, 32],
        rates=dict(actor_steps=830.4, learner_steps=6.25),
        replay_size=1_234,
        filling={},
        replays_per_observation=2.5,
        learners=dict(r2d2=dict(learner_steps=678)),
        returns={"catch": 0.75},
        aggregates={},
        evaluations={},
        left_out={},
    )
    for folder in (run.folder.nodes, run.folder.logs, run.folder.report):
        folder.mkdir()
    run.folder.progress.write_text(json.dumps(state))
    run.folder.log("actor").write_text("actor_steps,episode_return\n10,-1\n60000,0.75\n")
    for name in tour.FIGURES:
        (run.folder.report / f"catch-{name}.png").write_bytes(name.encode())
    drawn, *figures = tour.draw(run.path, tmp_path)
    svg = drawn.read_text().replace("&#160;", " ")
    assert "10 to 60,000 steps: recent return" in svg
    assert "1,234 items" in svg
    assert "saving" not in svg  # as it was while it went on
    assert "url(" not in svg.replace("url(#", "")
    assert [path.read_bytes().decode() for path in figures] == list(tour.FIGURES)
