"""An agent, a torso and a task of a user's own go all the way, with no line changed here."""

import json
import pathlib
import signal

import pytest

from tests import extending
from tests.commands import Commands
from tests.launch.runs import Run

pytestmark = pytest.mark.launchpad

LEARNED = 6.0  # of 8; by chance it would be 2
UPDATES = 600


def test_a_package_of_ones_own_is_trained_stopped_resumed_played_filmed_reported_and_diagnosed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, commands: Commands
) -> None:
    package = str(extending.write(tmp_path / "package"))
    monkeypatch.setenv("PYTHONPATH", package)

    def run_command(module: str, *arguments: str) -> str:
        ended = commands.run(module, f"--run_dir={path}", *arguments)
        imported = f"{path}/config.json names code, which is imported: my_package from {package}"
        said = [] if "--trust" in arguments else [f"{imported}/my_package."]
        # Where it takes long, it says how far it is.
        err = [line for line in ended.err.splitlines() if not line.endswith(" steps")]
        assert (ended.code, err) == (0, said)
        return ended.out

    path = tmp_path / "run"
    named = (f"--agent={extending.AGENT}", f"--env={extending.TASK}")
    own = (f"--REINFORCE.torso={extending.TORSO}", "--REINFORCE.discount=0.5")
    few = ("--num_actors=8", "--evaluation_episodes=0")
    with Run(path, *named, *own, *few) as run:
        run.wait_until_learning()
        code, out, err = run.end(signal.SIGTERM)
    assert (code, err) == (0, "")
    assert "The run has ended: it was asked to stop." in out
    stopped_at = run.manifest()["learner_step"]
    logs = {log: log.read_text() for log in (path / "logs").iterdir()}
    assert stopped_at > 0
    until = max(UPDATES, stopped_at + 100)

    with Run(path, "--resume", f"--max_learner_steps={until}") as run:
        code, out, err = run.finish()
    assert (code, err) == (0, "")
    assert f"Saved: the learner at update {until:,}, " in out
    assert run.manifest()["actor_steps"] > 0
    for log, before in logs.items():  # which goes on under one header
        header, *lines = log.read_text().splitlines()
        assert log.read_text().startswith(before)
        assert header not in lines
        assert {line.count(",") for line in lines} == {header.count(",")}
    recorded = json.loads((path / "config.json").read_text())
    assert (recorded["agent"], recorded["env"]) == (extending.AGENT, extending.TASK)
    assert recorded["configs"] == {"REINFORCE": dict(discount=0.5, torso=extending.TORSO)}

    played = run_command("launch.evaluate", "--episodes=20", "--video")
    assert float(played.split("mean return ")[1].split(" ")[0]) >= LEARNED
    assert len(list((path / "videos").glob("REINFORCE-*.mp4"))) == 1
    run_command("launch.report", "--trust")
    page = (path / "report" / "index.html").read_text()
    assert "of policy and value, the mean of a step" in page  # what it says of its log
    diagnosed = run_command("launch.diagnose", "--analyses=lag")
    assert str(path / "diagnostics" / "lag-REINFORCE.csv") in diagnosed.replace("\n", "")
