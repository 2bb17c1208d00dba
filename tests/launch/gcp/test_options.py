"""What a launch on Google Cloud lacks is said in a sentence, before anything is sent."""

import importlib.util
import os
from collections.abc import Iterator

import google.auth
import google.auth.exceptions
import pytest
from absl import flags
from absl.testing import flagsaver

from launch.gcp import launcher, options
from run_folder.settings import SettingsError

pytestmark = pytest.mark.repository

GIVEN = dict(
    gcp_region="europe-west4",
    gcp_repository="europe-west4-docker.pkg.dev/some-project/images",
)
RUN_DIR = "gs://some-bucket/runs/pong"


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
