"""Every benchmark on settings that take seconds: its figures, and what it refuses."""

import os
import pathlib
from typing import Any

import pytest

from benchmarks import local_replay, profile, subject
from tests.benchmarks.commands import SHORT, TINY, fake_python, report, tiny
from tests.commands import Commands

pytestmark = pytest.mark.repository  # commands run in a process that imports them by name

SLOW = pytest.mark.slow
OF_A_LEARNER = {
    "s": {"first_step"},
    "frames/s": {"learner"},
    "million": {"parameters"},
    "GB": {"peak_memory"},
    "GFLOP": {"useful_work_of_an_update"},
    "GFLOP/s": {"useful_work", "matmul_float32", "matmul_bfloat16"},
    "%": {"share_of_roof"},
}
FRAMES = 2 * (4 + 8)  # of an update of the tiny R2D2; the fake rival makes two a second


def _by_unit(contents: dict[str, Any]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, figure in contents["figures"].items():
        found.setdefault(figure["unit"], set()).add(name)
    return found


def _values(contents: dict[str, Any]) -> dict[str, float]:
    return {name: found["value"] for name, found in contents["figures"].items()}


@pytest.fixture
def fake(tmp_path: pathlib.Path) -> str:
    """A rival that only says it did the work."""
    return f"--peer_python={fake_python(tmp_path)}"


@SLOW
def test_actor(fake: str, commands: Commands) -> None:
    told = ("--num_environments=1,3", "--peer=acme", fake)
    contents = report(commands, "actor", *tiny("r2d2"), *SHORT, *told)
    rates = {f"{part}, {n}" for part in ("environments", "inference", "both") for n in (1, 3)}
    assert _by_unit(contents) == {
        "steps/s": rates | {"peer's inference, 1"},
        "%": {"share of the parts, 1", "share of the parts, 3"},
        "x": {"inference to peer's, 1"},
    }
    values = _values(contents)
    assert min(values[name] for name in rates) > 0
    assert values["peer's inference, 1"] == 2.0
    assert contents["settings"]["num_environments"] == [1, 3]


@SLOW
def test_learner_alone_with_replay_with_clients_and_beside_a_rival(
    fake: str, commands: Commands
) -> None:
    loaded = ("--with_replay", "--num_clients=64")
    contents = report(commands, "learner", *tiny("r2d2"), *SHORT, *loaded, "--peer=pytorch", fake)
    assert _by_unit(contents) == OF_A_LEARNER | {
        "s": {"first_step", "peer_first_step"},
        "frames/s": {"learner", "learner_with_replay", "learner_with_clients", "peer"},
        "%": {"share_of_roof", "lost_to_replay", "lost_to_clients"},
        "x": {"learner_to_peer"},
    }
    assert _values(contents)["peer"] == pytest.approx(FRAMES / 0.5)
    assert _values(contents)["peer_first_step"] == 2.5
    assert contents["versions"]["peer fake"] == "1.0"
    settings = contents["settings"]
    assert settings["config"]["batch_size"] == 2
    assert (settings["peer"], settings["num_clients"]) == ("pytorch", 64)
    assert settings["roof"] == "matmul_float32"


@SLOW
def test_learner_on_a_processor(commands: Commands) -> None:
    contents = report(commands, "learner", *tiny("impala"), *SHORT, "--device=cpu")
    assert _by_unit(contents) == OF_A_LEARNER
    assert contents["machine"]["accelerators"] == []
    assert contents["figures"]["learner"]["samples"] == 2


@SLOW
def test_learner_of_stacx_beside_impala_with_its_network(commands: Commands) -> None:
    contents = report(commands, "learner", *tiny("stacx"), *SHORT, "--peer=impala")
    assert _by_unit(contents)["x"] == {"learner_to_peer"}
    assert "GFLOP" not in _by_unit(contents)  # a metagradient is more than a network's work
    assert "peer dm-sonnet" in contents["versions"]


@SLOW
def test_learners(fake: str, commands: Commands) -> None:
    contents = report(commands, "learners", *tiny("r2d2"), *SHORT, fake)
    assert _by_unit(contents) == {
        "frames/s": {"one", "several", "several_apart"},
        "x": {"several_to_one"},
        "%": {"share_of_agreeing"},
        "ms": {"agreeing"},
        "MB": {"gradients"},
    }
    assert _values(contents)["several"] == pytest.approx(FRAMES / 0.5)  # of the whole batch
    assert _values(contents)["several_to_one"] == pytest.approx(1)
    assert contents["settings"]["learners"] == 2


@SLOW
def test_replay(commands: Commands) -> None:
    flags = ("--num_shards=1,2", "--num_items=60")
    contents = report(commands, "replay", *tiny("r2d2"), *SHORT, *flags)
    assert _by_unit(contents) == {
        "GB": {f"memory of 100000 items, {n}" for n in (1, 2)},
        "items/s": {f"{name}, {n}" for name in ("inserted", "sampled", "batches") for n in (1, 2)},
        "ms": {f"cpu of a batch, {n}" for n in (1, 2)},
    }


@SLOW
def test_wire(commands: Commands) -> None:
    contents = report(commands, "wire", *tiny("r2d2"), "--num_items=60")
    values = _values(contents)
    sent = ("item written", "item sampled", "priority", "parameters fetched")
    assert _by_unit(contents) == {
        "bytes": {"parameters", *(f"{what}, on the wire" for what in sent)},
        "ms of a core": {f"{what}, {end}" for what in sent for end in ("server", "client")},
    }
    assert values["parameters fetched, on the wire"] >= values["parameters"]
    header_and_state = 7 * 8 + 2 * 4 * contents["settings"]["config"]["lstm_size"]
    assert values["item written, on the wire"] > header_and_state


@SLOW
@pytest.mark.parametrize("agent", ["r2d2", "stacx"])
def test_profile(agent: str, commands: Commands) -> None:
    contents = report(commands, "profile", *tiny(agent), "--steps=2")
    assert _by_unit(contents) == {"ms": {"step", "operations"}, "%": {"Python", *profile.KINDS}}
    values = _values(contents)
    assert sum(values[kind] for kind in profile.KINDS) == pytest.approx(100, abs=0.1)
    for kind in (profile.FORWARD, profile.BY_FILTER, profile.LSTM, profile.OPTIMIZER):
        assert values[kind] > 0
    assert values[profile.POOLING] == 0
    assert 0 < values["Python"] < 100
    assert contents["settings"]["steps"] == 2


@SLOW
@pytest.mark.launchpad
def test_a_run_is_measured_against_its_parts_and_a_rival(fake: str, commands: Commands) -> None:
    flags = ("--seconds=3", "--num_actors=4", "--actors_per_node=2", "--peer=sample_factory", fake)
    contents = report(commands, "end_to_end", *tiny("impala"), *SHORT, *flags)
    values, units = _values(contents), _by_unit(contents)
    nodes = {name.removeprefix("cpu, ") for name in values if "cpu" in name}
    assert {"launcher", "replay/0", "learner/0", "actor/0", "actor/1"} <= nodes
    units["s"] = {name for name in units["s"] if "cpu" not in name}
    assert units == {
        "s": {"first_acting_step", "first_learner_step"},
        "steps/s": {"environments_alone", "inference_alone", "steps", "parts", "peer_steps"},
        "frames/s": {"learner_alone", "learner_frames"},
        "updates/s": {"updates"},
        "replays": {"replays_per_observation"},
        "%": {"share_of_the_parts"},
        "x": {"run_to_peer"},
    }
    assert values["peer_steps"] == 123.0
    assert values["steps"] > 0
    assert values["first_acting_step"] > 0
    # IMPALA learns from every step once.
    assert values["replays_per_observation"] == pytest.approx(1.0, abs=0.5)


@SLOW
@pytest.mark.launchpad
def test_a_runs_beginning_and_its_two_ends_are_measured(commands: Commands) -> None:
    flags = ("--env=catch", "--num_actors=2", "--actors_per_node=1", "--runs=1")
    contents = report(commands, "startup", *tiny("impala"), "--impala.torso=mlp", *flags)
    values, ends = _values(contents), ("end_when_interrupted", "end_after_a_crash")
    assert _by_unit(contents) == {
        "s": {"first_acting_step", "all_acting", "first_learner_step", *ends},
        "GB": {"memory"},
    }
    assert 0 < values["first_acting_step"] <= values["all_acting"]
    assert values["first_acting_step"] <= values["first_learner_step"]
    assert 0.1 < values["memory"] < 10
    assert all(0 < values[name] < 60 for name in ends)


MANY = len(os.sched_getaffinity(0)) + 1  # learners, more than this machine has cores
# One command for each check that a benchmark makes itself, and what it says.
REFUSED = {
    ("actor", "--num_environments=1,0"): "whole numbers of at least 1 with commas between them",
    ("end_to_end", "--peer=sb3_ppo"): "--peer=sb3_ppo plays control:, got --env=atari:pong.",
    ("end_to_end", "--env=katch"): "did you mean catch?",
    ("end_to_end", "--device=gpu"): "--device=gpu needs a GPU that TensorFlow sees",
    ("learner", "--device=gpu"): "--device=gpu needs a GPU that TensorFlow sees",
    ("learner", *tiny("impala"), "--peer=acme"): "that agent: pytorch, pytorch_tuned, pytorch_com",
    ("learners", *tiny("r2d2"), "--learners=3"): "--learners=3 must divide the batch of r2d2, 2 i",
    ("learners", *tiny("r2d2"), f"--r2d2.batch_size={MANY}", f"--learners={MANY}"): f"={MANY} must",
    ("replay", *tiny("r2d2"), "--num_shards=3"): "must give a multiple of 3; got a batch size of 2",
}


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_what_cannot_be_measured_is_refused_with_a_sentence(
    commands: Commands, words: tuple[str, ...]
) -> None:
    name, *flags = words
    finished = commands.run(f"benchmarks.{name}", *flags)
    assert (finished.code, finished.out) == (2, "")
    assert REFUSED[words] in " ".join(finished.err.split())


def test_a_batch_is_of_as_many_items_of_each_server() -> None:
    typed = {name: str(value) for name, value in TINY["r2d2"].items()}
    measured = subject.make("r2d2", "paper", {"r2d2": typed})
    local_replay.check(measured, 2)
    with pytest.raises(ValueError, match="must give a multiple of 3; got a batch size of 2"):
        local_replay.check(measured, 3)
