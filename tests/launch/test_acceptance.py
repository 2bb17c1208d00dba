"""Flags that a member's run would refuse are refused before population.json is written."""

import pathlib
from collections.abc import Iterator

import pytest

from launch import acceptance
from population import decisions, settings
from population.folder import PopulationFolder
from run_folder import run_lock
from tests.launch import typed_populations
from tests.launch.typed_populations import NEW, SWEEP, NoLoop, refused
from tests.population.populations import decision_of
from tests.run_folder import saved_runs
from tests.run_folder.holding import Holder

VALUES = dict(learning_rate=2e-3)


@pytest.fixture(autouse=True)
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[NoLoop]]:
    yield typed_populations.instead_of_training(monkeypatch)
    run_lock.release()


@pytest.fixture
def begun(tmp_path: pathlib.Path, stub: type[NoLoop]) -> pathlib.Path:
    """A population of which member 1 has saved a learner."""
    path = tmp_path / "population"
    assert typed_populations.run(*NEW, SWEEP, f"--run_dir={path}") == 0
    folder = PopulationFolder(path)
    decisions.write(folder, decision_of(1, 0, new=VALUES))
    saved_runs.save(folder.member(1).path, "impala")
    stub.trained.clear()
    run_lock.release()
    return path


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--impala.length=8"], "Member 01: A run cannot go on with --impala.length=8"),
        (["--impala.lstm_size=16"], "incompatible tensor with shape (32,)"),
        (["--impala.torso=dqn"], "Member 01: --agent=impala cannot play --env=catch"),
    ],
)
def test_a_flag_that_a_saved_run_refuses_changes_nothing(
    argv: list[str], said: str, begun: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, begun, f"--run_dir={begun}", "--resume", *argv)


def test_a_flag_that_every_run_takes_is_recorded(begun: pathlib.Path) -> None:
    assert typed_populations.run(f"--run_dir={begun}", "--resume", "--num_actors=5") == 0
    assert settings.load(begun).flags["num_actors"] == 5


def test_where_nothing_was_changed_nothing_is_asked(
    begun: pathlib.Path, stub: type[NoLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acceptance, "check", None)
    assert typed_populations.run(f"--run_dir={begun}", "--resume") == 0
    assert len(stub.trained) == 1


def test_of_a_run_that_is_saving_no_checkpoint_is_read(begun: pathlib.Path) -> None:
    run = PopulationFolder(begun).member(1)
    (run.checkpoints / "manifest.json").write_text("half")
    with Holder(run.path):
        assert typed_populations.run(f"--run_dir={begun}", "--resume", "--num_actors=5") == 0
    assert typed_populations.run(f"--run_dir={begun}", "--resume", "--num_actors=6") == 2
