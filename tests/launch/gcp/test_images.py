"""Our images in the place of Launchpad's: the seam, the recipe, what nodes carry, the report."""

import pathlib
import pickle
import re

import launchpad as lp
import pytest

from launch.gcp import images, launcher
from launch.gcp.options import Options, parse_hardware
from launch.graph import program
from launch.hosts import artefact
from run_folder import settings
from tests.commands import Commands
from tests.docs import pages
from tests.run_folder import saved_runs

pytestmark = pytest.mark.repository

xm_local = pytest.importorskip("xmanager.xm_local")
xm_docker = pytest.importorskip("launchpad.nodes.python.xm_docker")

REPOSITORY = "us-central1-docker.pkg.dev/some-project/images"
RUN_DIR = "gs://some-bucket/run"


@pytest.fixture
def run() -> settings.Settings:
    return saved_runs.resolve(run_dir=RUN_DIR, num_actors=3, actors_per_node=1)


@pytest.fixture
def options() -> Options:
    hosts = {
        kind: parse_hardware(f"gcp_{kind}", text)
        for kind, text in (
            *(("replay", "n1-highmem-2"), ("actor", "n1-highmem-2")),
            ("learner", "n1-standard-8+T4"),
        )
    }
    return Options("us-central1", REPOSITORY, "some-project", "some-bucket", hosts, dry_run=True)


def test_launchpad_and_xmanager_are_as_they_were_afterwards() -> None:
    before = xm_docker.to_docker_executables, xm_local.Vertex.Spec

    def executables(*_: object) -> images.Executables:
        return []

    with images.in_place_of_launchpads(executables, REPOSITORY):
        assert xm_docker.to_docker_executables is executables
        tags = [xm_local.Caip.Spec().push_image_tag for _ in range(2)]
        assert all(re.fullmatch(rf"{REPOSITORY}/recurrent-replay:[0-9-]+", tag) for tag in tags)
        assert tags[0] != tags[1]
    assert (xm_docker.to_docker_executables, xm_local.Vertex.Spec) == before


def test_kinds_of_equal_hardware_have_pools_of_their_own(
    run: settings.Settings, options: Options
) -> None:
    text = launcher.describe(run, {}, options)
    assert re.search(r"workerpool0 +1 +n1-highmem-2 +requirements.lock +replay/0\n", text)
    assert re.search(r"workerpool1 +5 .* coordinator/0, actor/0-2, evaluator/0\n", text)
    assert re.search(r"workerpool2 +1 +n1-standard-8\+T4 +requirements-gpu.lock +learner/0\n", text)


def test_several_shards_and_learners_fit_four_pools(options: Options) -> None:
    run = saved_runs.resolve(
        "r2d2,impala", run_dir=RUN_DIR, num_actors=4, actors_per_node=1, num_replay_shards=2
    )
    text = launcher.describe(run, {}, options)
    pools = re.findall(r"^workerpool\d +(\d+) .*?  (\S.*)$", text, re.MULTILINE)
    assert sorted(int(count) for count, _ in pools) == [1, 1, 2, 7]


def test_nodes_carry_no_config_to_their_hosts(run: settings.Settings, options: Options) -> None:
    made = program.make_program(run, {})
    configs = launcher.configs(made, options)
    assert pickle.loads(pickle.dumps(configs)) == dict.fromkeys(configs)


@pytest.mark.parametrize("lock", [images.LOCK, images.GPU_LOCK])
def test_a_context_holds_the_job_and_a_recipe_that_installs_the_locks_alone(
    lock: str, run: settings.Settings, tmp_path: pathlib.Path
) -> None:
    node = lp.PyNode(print)
    pool = artefact.Pool("workerpool1", "actor", ("actor/0",), (node,))
    images.write_context(tmp_path, pool, run, "us-central1", lock)
    assert {path.name for path in tmp_path.iterdir()} == {
        *("Dockerfile", lock, images.LAUNCHPAD_LOCK, images.GCP_LOCK, "workerpool1")
    }
    assert {path.name for path in (tmp_path / "workerpool1").iterdir()} > {"job.pkl", "launch"}
    text = (tmp_path / "Dockerfile").read_text()
    installs = [line for line in re.sub(r"\\\n", " ", text).split("&&") if "pip install" in line]
    assert len(installs) == 3
    assert all("--no-deps --require-hashes" in line for line in installs)
    assert f"-r {lock} -r {images.GCP_LOCK}" in installs[1]
    assert " CLOUD_ML_REGION=us-central1 " in text
    assert text.rstrip().endswith('ENTRYPOINT ["python", "-m", "launch.node", "--job=/job"]')
    assert "WORKDIR /job/workerpool1\n" in text


def test_labels_that_follow_one_another_are_a_range() -> None:
    labels = ["replay/0", "actor/0", "actor/1", "actor/2", "actor/4", "evaluator/0"]
    assert launcher.ranges(labels) == "replay/0, actor/0-2, actor/4, evaluator/0"


def test_the_page_shows_what_the_command_prints(commands: Commands) -> None:
    page = (artefact.ROOT / "docs" / "gcp.md").read_text()
    (words,) = [words for words in pages.commands(page) if "--gcp_dry_run" in words]
    outcome = commands.run(*words[2:])
    assert outcome.code == 0, outcome.err
    assert f"```text\n{outcome.out}```" in page
