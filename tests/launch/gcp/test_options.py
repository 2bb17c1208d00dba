"""A launch on Google Cloud that lacks something is told so before anything is sent."""

import importlib.util
import os
import types
from collections.abc import Iterator
from typing import Any

import google.auth
import google.auth.exceptions
import pytest
from absl import flags
from absl.testing import flagsaver

from launch import gcp_flags
from launch.gcp import launcher, options
from launch.gcp.options import MACHINES, Hardware, parse_hardware
from run_folder.settings import SettingsError

pytestmark = pytest.mark.repository

GIVEN = dict(
    gcp_region="europe-west4", gcp_repository="europe-west4-docker.pkg.dev/some-project/images"
)
RUN_DIR = "gs://some-bucket/runs/pong"


def test_where_the_bucket_takes_nothing_nothing_is_submitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run: Any = types.SimpleNamespace(run_dir=RUN_DIR)
    wanted: Any = types.SimpleNamespace(dry_run=False)
    mirror = types.SimpleNamespace(push=lambda: False)
    monkeypatch.setattr(launcher.mirrors, "of", lambda run_dir: mirror)
    with pytest.raises(SettingsError, match=f"{RUN_DIR} cannot be written: nothing was submitted"):
        launcher.launch(run, {}, wanted)


@pytest.fixture
def given() -> Iterator[None]:
    flags.FLAGS.mark_as_parsed()
    with flagsaver.flagsaver(**GIVEN):
        yield


@pytest.mark.usefixtures("given")
def test_project_and_bucket_are_in_what_is_given() -> None:
    found = options.check(RUN_DIR)
    assert (found.project, found.bucket) == ("some-project", "some-bucket")
    assert str(found.hosts["learner"]) == "n1-standard-8+T4"
    assert not found.dry_run


@pytest.mark.usefixtures("given")
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("gcp_region", None, "--gcp_region must be a region"),
        ("gcp_region", "Europe", "got 'Europe'"),
        ("gcp_repository", None, "gcloud artifacts repositories create"),
        ("gcp_repository", "gcr.io/some-project", "got 'gcr.io/some-project'"),
        ("gcp_actor", "n1-huge", "--gcp_actor=n1-huge"),
        ("run_dir", None, "gcloud storage buckets create"),
        ("run_dir", "runs/pong", "got 'runs/pong'"),
        ("run_dir", "gs://some-bucket", "gs://<bucket>/<run>"),
    ],
)
def test_what_cannot_be_is_refused(name: str, value: str | None, said: str) -> None:
    run_dir = value if name == "run_dir" else RUN_DIR
    changed = {} if name == "run_dir" else {name: value}
    with flagsaver.flagsaver(**changed), pytest.raises(SettingsError) as error:
        options.check(run_dir)
    assert said in str(error.value)


@pytest.mark.usefixtures("given")
def test_without_credentials_a_sentence_says_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nobody(**_: object) -> None:
        raise google.auth.exceptions.DefaultCredentialsError("Nobody.")

    monkeypatch.setattr(google.auth, "default", nobody)
    for name in ("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_BUCKET_NAME"):
        monkeypatch.setenv(name, "another")
    with pytest.raises(SettingsError, match="gcloud auth application-default login") as error:
        launcher.check_access(options.check(RUN_DIR))
    assert "Nobody." in str(error.value)
    assert os.environ["GOOGLE_CLOUD_PROJECT"] == "some-project"
    assert os.environ["GOOGLE_CLOUD_BUCKET_NAME"] == "some-bucket"


@pytest.mark.usefixtures("given")
def test_without_xmanager_a_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(launcher, "addition", "make setup-{}".format)
    with pytest.raises(SettingsError, match="make setup-gcp"):
        launcher.check(options.check(RUN_DIR), RUN_DIR, resume=False)


@pytest.mark.usefixtures("given")
def test_a_dry_run_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "check_access", lambda _: pytest.fail("It asked."))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    with flagsaver.flagsaver(gcp_dry_run=True):
        found = options.check(RUN_DIR)
    launcher.check(found, RUN_DIR, resume=False)
    with pytest.raises(SettingsError, match="--resume"):
        launcher.check(found, RUN_DIR, resume=True)


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("n1-highmem-2", Hardware("n1-highmem-2")),
        ("n1-standard-8+T4", Hardware("n1-standard-8", "T4", 1)),
        ("n1-standard-16+V100x2", Hardware("n1-standard-16", "V100", 2)),
        ("a2-highgpu-2g", Hardware("a2-highgpu-2g", "A100", 2)),
        ("g2-standard-8+L4", Hardware("g2-standard-8", "L4", 1)),
    ],
)
def test_what_is_named_is_read(text: str, host: Hardware) -> None:
    assert parse_hardware("gcp_learner", text) == host
    assert str(parse_hardware("gcp_learner", str(host))) == str(host)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no machine"),
        ("n1-standard-3", "no machine of Vertex AI's"),
        ("n1-standard-8+", "no machine"),
        ("n1-standard-8+H100", "take n1-standard-8+T4, n1-standard-8+T4x2"),
        ("a2-highgpu-1g+A100_80GB", "take a2-highgpu-1g+A100;"),
        ("n1-standard-8+L4", "L4 with g2-standard-8"),
        ("n1-standard-8+T4x3", "+T4, n1-standard-8+T4x2, n1-standard-8+T4x4, "),
        ("n1-standard-16+V100", "n1-standard-16+V100x2, n1-standard-16+V100x4, "),
        ("n1-standard-96+T4x2", "take n1-standard-96+T4x4, n1-standard-96+V100x8;"),
        ("a2-highgpu-1g+A100x2", "take a2-highgpu-1g+A100;"),
        ("g2-standard-8+T4", "take g2-standard-8+L4;"),
    ],
)
def test_a_host_that_cannot_be_had_is_refused(text: str, said: str) -> None:
    with pytest.raises(SettingsError) as error:
        parse_hardware("gcp_learner", text)
    assert said in str(error.value)
    assert f"--gcp_learner={text} " in str(error.value)


@pytest.mark.slow
def test_xmanager_rents_the_machine_that_was_named() -> None:
    xm = pytest.importorskip("xmanager.xm")
    vertex = pytest.importorskip("xmanager.cloud.vertex")
    xm_local = pytest.importorskip("xmanager.xm_local")
    names = [*MACHINES, "n1-standard-8+T4", "n1-standard-32+T4x4", "n1-highmem-16+V100x2"]
    for name in names:
        wanted = parse_hardware("gcp_learner", name)
        needs = xm.JobRequirements(**wanted.requirements())
        spec = vertex.get_machine_spec(
            xm.Job(executable=None, executor=xm_local.Vertex(requirements=needs))
        )
        assert spec["machine_type"] == wanted.machine
        assert spec.get("accelerator_count", 0) == wanted.number
        if wanted.accelerator:
            assert spec["accelerator_type"].name.endswith(f"_{wanted.accelerator}")


def test_quotas_add_up_over_pools() -> None:
    pools = [
        (Hardware("n1-highmem-8"), 1),
        (parse_hardware("gcp_learner", "a2-highgpu-2g"), 3),
        (Hardware("n1-highmem-2"), 258),
    ]
    assert launcher.needs(pools) == [
        ("N1 vCPUs", 8 + 516, 2_200),
        ("boot disks, GB", 26_200, 75_000),
        ("A2 vCPUs", 72, None),
        ("A100", 6, 8),
    ]


def test_defaults_are_machines() -> None:
    for name in ("gcp_replay", "gcp_learner", "gcp_actor"):
        assert name in gcp_flags.NAMES
        assert parse_hardware(name, str(flags.FLAGS[name].default)).machine in MACHINES
