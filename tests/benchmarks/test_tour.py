"""The pictures of the tour are of the run that is named."""

import json
import os
import pathlib

import pytest

from benchmarks import tour
from tests.run_folder import saved_runs


def test_the_pictures_are_the_view_and_the_report(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = tmp_path / "chromium"
    browser.write_text(
        "#!/bin/sh\n"
        "for word; do case $word in --screenshot=*) picture=${word#*=};; esac; done\n"
        'echo "$@" > "$picture"\n'
    )
    browser.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    run = saved_runs.save(tmp_path / "runs" / "catch")
    state = dict(
        reason="60,000 actor steps were reached",
        counts=dict(actor_steps=60_000, episodes=90, walltime=61.0, environments_lost=0),
        limits={},
        goal=None,
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
    (page := run.folder.report / "index.html").touch()
    drawn, wide, narrow = tour.draw(run.path, tmp_path)
    svg = drawn.read_text().replace("&#160;", " ")
    assert "10 to 60,000 steps: recent return" in svg
    assert "1,234 items" in svg
    assert "saving" not in svg  # as it was while it went on
    assert "url(" not in svg.replace("url(#", "")
    assert "--window-size=1000,1020" in wide.read_text()
    assert "preferredColorScheme=0" in narrow.read_text()
    assert wide.read_text().split()[-1] == page.as_uri()


@pytest.mark.parametrize("missing", ["index.html", "chromium"])
def test_what_is_missing_is_named(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    run = saved_runs.save(tmp_path / "runs" / "catch")
    run.folder.report.mkdir()
    for path in (tmp_path / "chromium", run.folder.report / "index.html"):
        if path.name != missing:
            path.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=missing):
        tour.draw(run.path, tmp_path)
    assert not (tmp_path / "tour-view.svg").exists()
