"""The README's snippet runs as it stands, without the launch room, and learns."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

AFTERWARDS = """
import sys
assert not any(name.split(".")[0] == "launch" for name in sys.modules)
assert isinstance(agent, acme.core.Actor) and isinstance(agent, acme.core.VariableSource)
assert isinstance(agent.learner, acme.core.Learner)
loop = acme.EnvironmentLoop(environment, agent)
print("mean return", sum(loop.run_episode()["episode_return"] for _ in range(100)) / 100)
agent.close()
"""


@pytest.mark.slow
@pytest.mark.repository
def test_the_snippet_learns_catch(tmp_path: Path) -> None:
    snippet = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert snippet is not None
    assert len(snippet[1].splitlines()) < 20
    environment = {**os.environ, "HOME": str(tmp_path)}  # where Acme's loop logs
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)  # a reader has set none
    run = subprocess.run(
        [sys.executable, "-c", snippet[1] + AFTERWARDS],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (run.returncode, run.stderr) == (0, "")  # and nobody's lines about themselves
    assert run.stdout.startswith("mean return ")
    mean = float(run.stdout.split("mean return")[1])
    assert mean >= 0.5  # acting with epsilon 0.1; a random player has -0.6
