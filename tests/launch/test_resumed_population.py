"""A population goes on as it was, and ends in order."""

import errno
import pathlib
from collections.abc import Iterator

import pytest

from launch import population
from population import settings
from recurrent_replay import command
from run_folder import run_lock
from tests.launch import typed, typed_populations
from tests.launch.typed_populations import APART, NEW, SWEEP, NoLoop
from tests.population.populations import refuse
from tests.run_folder.holding import Holder


@pytest.fixture(autouse=True)
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[NoLoop]]:
    yield typed_populations.instead_of_training(monkeypatch)
    run_lock.release()


BEGAN = (*NEW, SWEEP, "--seed=3", "--num_actors=4", "--impala.length=8")


@pytest.fixture
def begun(tmp_path: pathlib.Path, stub: type[NoLoop]) -> pathlib.Path:
    """A population of four that has begun."""
    path = tmp_path / "population"
    assert typed_populations.run(*BEGAN, f"--run_dir={path}") == 0
    stub.trained.clear()
    run_lock.release()
    return path


def test_a_population_goes_on_as_it_was(begun: pathlib.Path, stub: type[NoLoop]) -> None:
    before = (begun / "population.json").read_text()
    begun = begun.rename(begun.with_name("moved"))
    assert typed_populations.run(f"--run_dir={begun}", "--resume") == 0
    same = ("--agent=impala", "--env=catch", "--seed=3", "--members=4", "--evolve=all")
    assert typed_populations.run(f"--run_dir={begun}", "--resume", *same, "--preset=local") == 0
    first, second = stub.trained
    assert (first[1:], second[1:]) == (([0, 1, 2, 3], begun), ([0, 1, 2, 3], begun))
    assert first[0].to_json() == before
    assert second[0].flags == first[0].flags | dict(preset="local")


def test_a_population_goes_on_with_what_may_change(begun: pathlib.Path, stub: type[NoLoop]) -> None:
    argv = ("--max_actor_steps=5000", "--impala.baseline_cost=0.25", "--ready_episodes=7")
    assert typed_populations.run(f"--run_dir={begun}", "--resume", *argv, "--num_actors=5") == 0
    ((found, *_),) = stub.trained
    assert found.flags == dict(num_actors=5, max_actor_steps=5_000, agent="impala", env="catch")
    assert found.overrides["impala"] == dict(length="8", baseline_cost="0.25")
    assert (found.ready_episodes, found.seed) == (7, 3)
    assert settings.load(begun) == found


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (
            ["--agent=popart"],
            "holds a population of --agent=impala; it cannot go on as --agent=pop",
        ),
        (["--members=5"], "holds a population of --members=4; it cannot go on as --members=5."),
        ([APART], "holds a population of --evolve=all; it cannot go on as --evolve=none."),
        (["--run_dir="], "--run_dir must be given."),
        (["--run_dir=nothing"], "nothing holds no population: there is no nothing/population.json"),
        ([SWEEP], "--sweep is for a population that begins; this one has begun."),
        (
            ["--preset=paper", "--impala.torso=mlp"],
            "of --preset=local; it cannot go on as --preset",
        ),
        (["--num_replay_shards=2"], "of --num_replay_shards=1; it cannot go on as"),
        (["--impala.learning_rate=1"], "--impala.learning_rate is what --sweep draws"),
        (["--annealing_frames=9000"], "--annealing_frames=9000 is for members that do not evolve"),
    ],
)
def test_what_would_be_another_population_is_refused_and_nothing_is_changed(
    argv: list[str],
    said: str,
    begun: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    stub: type[NoLoop],
) -> None:
    before = typed.contents(begun)
    assert typed_populations.run(f"--run_dir={begun}", "--resume", *argv) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1
    assert typed.contents(begun) == before
    assert not stub.trained


def test_one_process_at_a_time_trains_a_population(
    begun: pathlib.Path, capsys: pytest.CaptureFixture[str], stub: type[NoLoop]
) -> None:
    before = typed.contents(begun)
    with Holder(begun):
        before |= {str(begun / "lock"): (begun / "lock").read_bytes()}
        for more in ("--ready_episodes=9", "--member=1"):
            assert typed_populations.run(f"--run_dir={begun}", "--resume", more) == 2
            assert f"{begun} is being trained by another process" in capsys.readouterr().err
        assert typed.contents(begun) == before
    assert not stub.trained


def test_hosts_train_members_beside_each_other(
    begun: pathlib.Path, capsys: pytest.CaptureFixture[str], stub: type[NoLoop]
) -> None:
    host = begun / "hosts" / "01"
    host.mkdir(parents=True)
    with Holder(host):
        for more, code in (
            ("--member=0", 0),
            ("--member=1", 2),
            ("--member=3", 0),
            ("--resume", 2),
        ):
            assert typed_populations.run(f"--run_dir={begun}", "--resume", more) == code
            if code:
                assert f"{host} is being trained by another process" in capsys.readouterr().err
    assert [members for _, members, _ in stub.trained] == [[0], [3]]
    assert typed_populations.run(f"--run_dir={begun}", "--resume") == 0


@pytest.mark.parametrize(("well", "code"), [(True, 0), (False, 1)])
def test_the_best_is_named_in_the_end(
    well: bool,
    code: int,
    begun: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    stub: type[NoLoop],
) -> None:
    stub.well, stub.values = well, {0: float("nan"), 1: -0.5, 2: 0.25, 3: 0.1}
    assert typed_populations.run(f"--run_dir={begun}", "--resume") == code
    out = capsys.readouterr().out
    assert "Best: member 02, with 0.25." in out
    assert f"Evaluate: {command('evaluate')} --run_dir={begun}/members/02 --episodes=30" in out
    assert f"Report:   {command('report')} --run_dir={begun}" in out


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (settings.SettingsError("Member 01: it is refused."), 2, "Member 01: it is refused.\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_ends_a_population_is_told(
    raised: BaseException,
    code: int,
    said: str,
    begun: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    stub: type[NoLoop],
) -> None:
    stub.raises = raised
    assert typed_populations.run(f"--run_dir={begun}", "--resume") == code
    assert capsys.readouterr().err == said
    with Holder(begun):  # the lock was given back
        pass


def test_hosts_that_come_later_join_by_the_same_command(
    begun: pathlib.Path, stub: type[NoLoop], capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed_populations.run(*BEGAN, f"--run_dir={begun}", "--member=2") == 0
    ((found, members, _),) = stub.trained
    assert (found, members) == (settings.load(begun), [2])
    assert (begun / "hosts" / "02" / "lock").exists()
    other = (*NEW, "--sweep=impala.entropy_cost=log:1e-4:1e-2", f"--run_dir={begun}", "--member=2")
    assert typed_populations.run(*other) == 2
    assert "holds a population of --sweep=" in capsys.readouterr().err


def test_a_terminal_that_is_gone_ends_nothing(
    begun: pathlib.Path, monkeypatch: pytest.MonkeyPatch, stub: type[NoLoop]
) -> None:
    stub.values = {0: 1.0}
    monkeypatch.setattr(population, "print", refuse(errno.EIO), raising=False)
    assert typed_populations.run(f"--run_dir={begun}", "--resume") == 0
    assert len(stub.trained) == 1
