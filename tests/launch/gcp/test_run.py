"""What a recorded job's images hold runs, on hosts as Vertex AI sets them up, until it ends."""

import csv
import io
import json
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from launch.hosts import job as jobs
from tests.commands import Commands
from tests.launch import namespaces
from tests.launch.gcp import cloud, identity, vertex
from tests.launch.gcp.cloud import Cloud
from tests.patience import PATIENCE

pytestmark = [pytest.mark.repository, pytest.mark.slow, pytest.mark.launchpad, namespaces.NEEDED]
RUN = "runs/catch"
CATCH = (
    *("--agent=r2d2", "--env=catch", "--num_actors=32", "--actors_per_node=16", "--seed=1"),
    *("--evaluation_minutes=0.1", "--evaluation_episodes=10", "--max_actor_steps=60000"),
)
ON_THE_CLOUD = (
    *("--lp_launch_type=vertex_ai", "--gcp_learner=n1-standard-8"),
    f"--gcp_region={vertex.REGION}",
    f"--gcp_repository={cloud.REPOSITORY}",
    f"--run_dir=gs://{cloud.BUCKET}/{RUN}",
)
SOLVED = 0.9
SECONDS = 3 * PATIENCE  # in which a run learns
GRACE_SECONDS = 15.0
JOBS = f"projects/{identity.PROJECT}/locations/{vertex.REGION}/customJobs"


@pytest.fixture
def here(tmp_path: pathlib.Path) -> Iterator[Cloud]:
    with cloud.running(tmp_path) as found:
        yield found


class Started:
    """A job whose every replica has a host of its own, as Vertex AI starts it: the newest."""

    def __init__(self, here: Cloud) -> None:
        self._here = here
        job, number = here.jobs()[-1], len(here.jobs())
        self._cancelled = here.folder / "jobs" / f"{number}.cancelled"
        images = [
            here.folder / "images" / pool["container"][0]["image"][0].partition("@sha256:")[2]
            for pool in job["job"][0]["spec"][0]["pools"]
        ]
        pools = {name: pool for image in images for name, pool in jobs.read(image).items()}
        self.hosts = {
            name: [here.network.add() for _ in pool.labels] for name, pool in pools.items()
        }
        cluster = {
            name: [f"{host.address}:2222" for host in hosts] for name, hosts in self.hosts.items()
        }
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        for image, (name, pool) in zip(images, pools.items(), strict=True):
            command, folder, variables = _recipe(image)
            for index, label in enumerate(pool.labels):
                spec = {"cluster": cluster, "task": {"type": name, "index": index}}
                self.processes[label] = self.hosts[name][index].start(
                    here.within(command),
                    folder=folder,
                    environment={
                        **here.environment(),
                        **variables,
                        "CLUSTER_SPEC": json.dumps(spec),
                        "CLOUD_ML_JOB_ID": str(number),
                        "CLOUD_ML_PROJECT_ID": identity.PROJECT,
                    },
                    output=self.output(label),
                )

    def output(self, label: str) -> pathlib.Path:
        """What a node prints."""
        return self._here.folder / f"{label.replace('/', '-')}.txt"

    def wait_until_cancelled(self) -> str:
        """Waits while no process fails (an actor's ends by itself); says what was cancelled."""
        until = time.monotonic() + SECONDS
        while not self._cancelled.exists():
            for label, process in self.processes.items():
                printed = self.output(label).read_text(errors="replace")[-3000:]
                assert not process.poll(), f"{label}: {printed}"
                assert time.monotonic() < until, f"{label}: {printed}"
            time.sleep(0.5)
        return self._cancelled.read_text()

    def terminate(self) -> None:
        """Does what Vertex AI does to a cancelled job's processes: SIGTERM, and after a while more.

        The learner may wait for a replay that is gone already; what it knew has been saved.
        """
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        until = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < until and any(p.poll() is None for p in self.processes.values()):
            time.sleep(0.1)
        for hosts in self.hosts.values():
            for host in hosts:
                host.kill()


def _recipe(image: pathlib.Path) -> tuple[list[str], pathlib.Path, dict[str, str]]:
    """Command, folder and variables of an image's processes, where /job is the image's context."""
    text = (image / "Dockerfile").read_text()
    entry = json.loads(text.rpartition("ENTRYPOINT ")[2])
    assert entry[0] == "python"
    command = [sys.executable, *entry[1:]]
    folder = re.findall(r"^WORKDIR /job/(.*)$", text, re.MULTILINE)[-1]
    variables = dict(pair.split("=") for pair in re.findall(r"CLOUD_ML_REGION=\S+", text))
    return [word.replace("/job", str(image)) for word in command], image / folder, variables


def _launch(here: Cloud, *flags: str) -> Started:
    within = here.user.within(here.within())
    with Commands(within, here.environment()) as commands:
        outcome = commands.run("launch.train", *flags, *ON_THE_CLOUD)
    assert outcome.code == 0, outcome.err
    return Started(here)


def _ended(here: Cloud) -> dict[str, Any]:
    """The manifest of a run that ended in order, whose files are all in the bucket."""
    assert f"{RUN}/nodes/crash.txt" not in here.objects()
    manifest: dict[str, Any] = json.loads(here.read(f"{RUN}/checkpoints/manifest.json"))
    assert manifest["replay"] is not None
    for name, size in manifest["sizes"].items():
        assert len(here.read_bytes(f"{RUN}/checkpoints/{name}")) == size
    return manifest


def _state(here: Cloud) -> tuple[str, str]:
    state = json.loads(here.read(f"{RUN}/nodes/progress.json"))
    return state["state"], state["reason"]


def test_a_run_on_the_clouds_hosts_learns_cancels_its_job_and_goes_on_in_another(
    here: Cloud,
) -> None:
    started = _launch(here, *CATCH)
    addresses = {host.address for hosts in started.hosts.values() for host in hosts}
    assert len(addresses) == 6
    assert started.wait_until_cancelled() == f"{JOBS}/1"
    started.terminate()
    assert _state(here) == ("finished", "60,000 actor steps were reached")
    rows = csv.DictReader(io.StringIO(here.read(f"{RUN}/logs/evaluator.csv")))
    assert max(float(row["episode_return"]) for row in rows) >= SOLVED
    before = _ended(here)

    started = _launch(here, "--resume", "--max_actor_steps=64000")
    assert started.wait_until_cancelled() == f"{JOBS}/2"
    started.terminate()
    assert _state(here) == ("finished", "64,000 actor steps were reached")
    after = _ended(here)
    for name in ("actor_steps", "learner_step", "trained_steps", "walltime"):
        assert after[name] > before[name]
    assert after["replay_items"] >= before["replay_items"]  # far more than it has written itself
