"""The launch on Google Cloud, from a host that reaches fakes of its end points and no other."""

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from recurrent_replay import ROOMS
from tests.commands import Commands, Outcome
from tests.launch import namespaces
from tests.launch.gcp import cloud, identity, vertex
from tests.launch.gcp.cloud import Cloud

pytestmark = [pytest.mark.repository, pytest.mark.slow, namespaces.NEEDED]
T4 = 5  # of Vertex AI's AcceleratorType
CATCH = ("--agent=r2d2", "--env=catch", "--actors_per_node=1")
FLAGS = (
    "--lp_launch_type=vertex_ai",
    f"--gcp_region={vertex.REGION}",
    f"--gcp_repository={cloud.REPOSITORY}",
)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with cloud.running(tmp_path_factory.mktemp("cloud")) as found:
        yield found


@pytest.fixture(scope="module")
def commands(here: Cloud) -> Iterator[Commands]:
    """The user's: Google's client libraries are imported once, what has flags in each anew."""
    within = here.user.within(here.within())
    with Commands(within, here.environment(), ["google.cloud.aiplatform"]) as found:
        yield found


def _launch(commands: Commands, name: str, *flags: str) -> Outcome:
    run_dir = f"--run_dir=gs://{cloud.BUCKET}/{name}"
    return commands.run("launch.train", *CATCH, *FLAGS, run_dir, *flags)


def _pools(job: dict[str, Any]) -> list[tuple[int, str, list[int], list[int]]]:
    """Replicas, machine, and type and number of accelerators of each pool."""
    return [
        (
            pool["replicas"][0],
            pool["machine"][0]["machine_type"][0],
            pool["machine"][0].get("accelerator", []),
            pool["machine"][0].get("count", []),
        )
        for pool in job["job"][0]["spec"][0]["pools"]
    ]


def test_the_job_is_the_program(here: Cloud, commands: Commands) -> None:
    outcome = _launch(commands, "run", "--num_actors=4")
    assert outcome.code == 0, outcome.err
    job = here.jobs()[-1]
    assert job["parent"] == [f"projects/{identity.PROJECT}/locations/{vertex.REGION}"]
    assert _pools(job) == [
        (1, "n1-highmem-8", [], []),
        (6, "n1-highmem-2", [], []),  # with coordinator and evaluator
        (1, "n1-standard-8", [T4], [1]),
    ]
    (spec,) = job["job"][0]["spec"]
    assert spec["service_account"] == [f"xmanager@{identity.PROJECT}.iam.gserviceaccount.com"]
    images = [pool["container"][0]["image"][0] for pool in spec["pools"]]
    for number, image in enumerate(images):
        name, _, digest = image.partition("@sha256:")
        assert name == f"{cloud.REPOSITORY}/recurrent-replay"
        _check_image(here.folder / "images" / digest, f"workerpool{number}", gpu=number == 2)
    assert len(set(images)) == 3
    assert "custom-jobs cancel projects/" in outcome.out
    assert {"run/config.json", "run/launches.jsonl"} <= here.objects()


def _check_image(context: pathlib.Path, pool: str, *, gpu: bool) -> None:
    """An image holds its pool's nodes, the sources and the locks, and nothing else of the tree."""
    lock = "requirements-gpu.lock" if gpu else "requirements.lock"
    top = {path.name for path in context.iterdir()}
    assert top == {"Dockerfile", lock, "requirements-launchpad.lock", "requirements-gcp.lock", pool}
    rooms = {path.name for path in (context / pool).iterdir()}
    assert rooms == {
        *(*ROOMS, "launch"),
        *("recurrent_replay.py", "job.pkl", "pool.json", "secret"),
    }
    recipe = (context / "Dockerfile").read_text()
    assert recipe.startswith("FROM python:3.11-")
    assert f" CLOUD_ML_REGION={vertex.REGION} " in recipe
    assert json.loads(recipe.rpartition("ENTRYPOINT ")[2])[:3] == ["python", "-m", "launch.node"]


def test_an_image_that_cannot_be_built_is_one_sentence_and_no_job(
    here: Cloud, commands: Commands
) -> None:
    jobs, full = len(here.jobs()), here.folder / "full"
    full.touch()
    outcome = _launch(commands, "full", "--num_actors=2")
    full.unlink()
    assert outcome.code == 2
    *said, sentence = outcome.err.splitlines()
    assert "ERROR: failed to solve: no space left on device" in said
    assert sentence.startswith("`docker buildx build` ended with exit code 1, and said why above")
    assert "Traceback" not in outcome.err
    assert len(here.jobs()) == jobs
    run_dir = f"--run_dir=gs://{cloud.BUCKET}/full"
    assert commands.run("launch.train", *FLAGS, run_dir, "--resume").code == 0  # as it says
    assert len(here.jobs()) == jobs + 1


def test_a_run_that_is_there_is_not_begun_again(commands: Commands) -> None:
    outcome = _launch(commands, "twice/", "--num_actors=2")
    assert outcome.code == 0
    assert f"storage cat gs://{cloud.BUCKET}/twice/nodes/progress.json\n" in outcome.out
    outcome = _launch(commands, "twice", "--num_actors=2")
    assert outcome.code == 2
    assert "holds a run already" in outcome.err


def test_a_bucket_that_is_missing_is_named_with_what_makes_it(
    here: Cloud, commands: Commands
) -> None:
    jobs = len(here.jobs())
    outcome = commands.run("launch.train", *CATCH, *FLAGS, "--run_dir=gs://other/run")
    assert outcome.code == 2
    assert "gcloud storage buckets create gs://other" in outcome.err
    assert len(here.jobs()) == jobs
