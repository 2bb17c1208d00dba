"""The examples of docs/clusters.md give every process of a run a place of its own."""

import json
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest

from launch.hosts import cluster_spec, job
from tests.docs.pages import ROOT

pytestmark = pytest.mark.repository

PAGE = (ROOT / "docs" / "clusters.md").read_text()
TASKS = 36
# Ranks that are started, of every pool: each takes interpreters.
STARTED = (35, 34, 20, 4, 3, 1, 0)

# launch.node writes down where it is told to be, but for the first one, which crashes; all else is
# real.
PYTHON = f"""#!/bin/sh
case "$2" in
launch.node) [ -e "$PLACES" ] || {{ touch "$PLACES"; exit 1; }}
    echo "$CLUSTER_SPEC" >> "$PLACES" ;;
launch.train) cd {ROOT} && exec {sys.executable} "$@" ;;
*) exec {sys.executable} "$@" ;;
esac
"""
SRUN = f"""#!/bin/bash
shift
if [ "$1" = hostname ]; then
    for (( task = {TASKS} - 1; task >= 0; task-- )); do
        printf '%02d: host%d\\n' $task $((task / 4))
    done
else
    for task in {" ".join(map(str, STARTED))}; do SLURM_PROCID=$task "$@" || exit; done
fi
"""


def _example(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def _run(folder: pathlib.Path, script: str, **environment: str) -> list[dict[str, Any]]:
    """Runs a script and gives the CLUSTER_SPEC of each node that it starts."""
    places = folder / "places"
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    told = {**os.environ, "HOME": str(folder), "PATH": path, "PLACES": str(places)}
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=told | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in places.read_text().splitlines()]


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A home with commands that stand for a scheduler's and Python's."""
    binaries = {
        "bin/python": PYTHON,
        "bin/srun": SRUN,
        "bin/sleep": "#!/bin/sh\n",
        "recurrent-replay/.venv/bin/python": PYTHON,
    }
    for name, text in binaries.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def test_the_examples_place_every_node(folder: pathlib.Path) -> None:
    slurm = {"SLURM_JOB_ID": "7", "SLURM_SUBMIT_DIR": str(folder)}
    told = _run(folder, _example("bash"), **slurm)
    pools = {name: pool.labels for name, pool in job.read(folder / "pong-job-7").items()}
    nodes = [(name, index) for name, labels in pools.items() for index in range(len(labels))]
    assert len(nodes) == TASKS
    places = [cluster_spec.read({"CLUSTER_SPEC": json.dumps(spec)}, pools) for spec in told]
    assert [(place.pool, place.index) for place in places] == [nodes[rank] for rank in STARTED]
    assert len({json.dumps(spec["cluster"]) for spec in told}) == 1
    addresses = [address for pool in told[0]["cluster"].values() for address in pool]
    assert addresses == [f"host{rank // 4}:{2222 + rank % 4}" for rank in range(TASKS)]

    (folder / "places").write_text("")
    (folder / "pong-job").symlink_to(folder / "pong-job-7")
    command = re.search(r"- \|\n(.*?) +volumeMounts", _example("yaml"), re.DOTALL)
    assert command is not None
    script = command[1].replace("/shared", str(folder))
    (spec,) = _run(folder, script, JOB_COMPLETION_INDEX="35")
    assert spec["cluster"]["workerpool0"] == ["pong-0.pong:2222"]
    assert spec["task"] == {"type": "workerpool2", "index": 32}
    assert f"completions: {TASKS}\n" in _example("yaml")
