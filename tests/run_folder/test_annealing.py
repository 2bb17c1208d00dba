"""By when learning rates have fallen: what is played says so, a flag, or the run that goes on."""

import dataclasses
import json
import pathlib
from typing import Any

import pytest

from environments import scores
from environments.dmlab import environment as dmlab
from run_folder import resuming, settings
from run_folder.settings import EVERY_AGENT, Settings, SettingsError

PONG, ATARI57, LEVEL = "atari:pong", "atari57", "dmlab:seekavoid_arena_01"
GAMES = "atari:pong,atari:breakout,atari:qbert"
LEVELS = f"{LEVEL},dmlab:rooms_watermaze"
TWELVE_LEVELS = ",".join(scores.DMLAB30_TRAINING[:12])


@pytest.fixture(autouse=True)
def _with_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """That nothing here starts."""
    monkeypatch.setattr(dmlab, "installed", lambda: True)


def _given(**values: Any) -> dict[str, Any]:
    names = [f.name for f in dataclasses.fields(Settings) if f.name != "configs"]
    return dict.fromkeys(names) | dict(env="catch", run_dir="/run", preset="local") | values


def _resolve(agent: str, env: str, typed: dict[str, str], preset: str = "local") -> Settings:
    """A run of which `--<field>=` or `--<agent>.<field>=` was typed."""
    overrides: dict[str, dict[str, str]] = {}
    for name, text in typed.items():
        of, _, field = name.rpartition(".")
        overrides.setdefault(of, {})[field] = text
    return settings.resolve(_given(agent=agent, env=env, preset=preset), overrides)


# Of a game, a level, DMLab-30's ten and more levels, and anything else.
@pytest.mark.parametrize(
    ("agent", "env", "preset", "frames", "updates"),
    [
        ("impala", PONG, "paper", 200e6, 200e6 / 4 / (32 * 20)),  # 78,125
        ("impala", PONG, "local", 200e6, 200e6 / 4 / (8 * 16)),
        ("impala", GAMES, "paper", 600e6, 600e6 / 4 / (32 * 20)),
        ("impala", ATARI57, "paper", 11.4e9, 57 * 78_125),  # Section 5.3.2
        ("impala", ATARI57, "local", 11.4e9, 11.4e9 / 4 / (8 * 16)),
        ("popart", PONG, "paper", 200e6, 78_125),
        ("popart", PONG, "local", 200e6, 200e6 / 4 / (32 * 16)),
        ("popart", ATARI57, "paper", 11.4e9, 57 * 78_125),
        ("multihead_impala", ATARI57, "paper", 11.4e9, 57 * 78_125),
        ("impala", LEVEL, "paper", 1e9, 1e9 / 4 / (32 * 100)),  # 78,125
        ("impala", LEVEL, "local", 1e9, 1e9 / 4 / (8 * 32)),
        ("impala", LEVELS, "paper", 2e9, 2e9 / 4 / (32 * 100)),
        ("impala", TWELVE_LEVELS, "paper", 10e9, 781_250),
        ("impala", "dmlab30", "paper", 10e9, 781_250),
        ("popart", "dmlab30", "paper", 10e9, 781_250),
        ("popart", "dmlab30", "local", 10e9, 10e9 / 4 / (32 * 16)),
        ("impala", "catch", "local", 200e6, 200e6 / (8 * 16)),
        ("popart", "catch,catch:large_rewards", "local", 400e6, 400e6 / (8 * 16)),
        ("impala", "gym:CartPole-v1", "paper", 200e6, 200e6 / (32 * 20)),
        ("stacx", "gym:Pendulum-v1", "paper", 30e6, 125_000),
        ("stacx", "gym:Pendulum-v1", "local", 30e6, 125_000),
    ],
)
def test_every_run_has_the_papers_horizon(
    agent: str, env: str, preset: str, frames: float, updates: float
) -> None:
    config = _resolve(agent, env, {}, preset).configs[agent]
    assert config.annealing_frames == frames
    assert config.annealing_updates == updates


def test_a_replayed_unroll_brings_no_new_frames() -> None:
    run = _resolve("impala", PONG, {"impala.replay_fraction": "0.75"})
    assert run.configs["impala"].annealing_updates == 200e6 / 4 / (2 * 16)


@pytest.mark.parametrize("name", ["annealing_frames", "impala.annealing_frames"])
@pytest.mark.parametrize(("text", "value"), [("5120", 5_120), ("none", None), ("None", None)])
def test_both_flags_set_the_horizon(name: str, text: str, value: int | None) -> None:
    config = _resolve("impala", PONG, {name: text}).configs["impala"]
    assert config.annealing_frames == value
    assert config.annealing_updates == (None if value is None else 10)


def test_one_flag_is_for_every_agent_that_anneals_and_an_agents_own_goes_before_it() -> None:
    typed = {"annealing_frames": "none", "popart.annealing_frames": "7", "impala.length": "8"}
    run = _resolve("r2d2,impala,popart", "catch", typed)
    frames = {name: getattr(c, "annealing_frames", "") for name, c in run.configs.items()}
    assert frames == {"r2d2": "", "impala": None, "popart": 7}
    assert run.configs["impala"].length == 8
    plain = _resolve("r2d2,impala,popart", "catch", {})
    assert plain.configs["impala"].annealing_frames == plain.configs["popart"].annealing_frames


@pytest.mark.parametrize(
    ("agent", "typed", "said"),
    [
        (
            "impala",
            {"annealing_frames": "0"},
            "--annealing_frames must be a whole number from 1 to 9,223,372,036,854,775,807 or "
            "None, got 0.",
        ),
        (
            "r2d2,popart",
            {"annealing_frames": "2e8.5"},
            "--annealing_frames must be of type int or none, got '2e8.5'.",
        ),
        (
            "r2d2,popart",
            {"popart.annealing_frames": "", "annealing_frames": "3"},
            "--popart.annealing_frames must be of type int or none, got ''.",
        ),
        (
            "impala",
            {"impala.final_learning_rate": "-1", "annealing_frames": "3"},
            "--impala.final_learning_rate must be a number from 0 to 1e+15, got -1.0.",
        ),
        (
            "r2d2,r2d2_plus",
            {"annealing_frames": "none"},
            "--annealing_frames sets a hyperparameter that none of this run's agents has: "
            "r2d2, r2d2_plus.",
        ),
    ],
)
def test_bad_horizons_are_refused(agent: str, typed: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError) as error:
        _resolve(agent, "catch", typed)
    assert str(error.value) == said


def _record(folder: pathlib.Path, run: Settings, **changes: Any) -> None:
    """Writes config.json, with other fields of IMPALA's."""
    said = json.loads(run.to_json())
    said["configs"]["impala"] |= changes
    (folder / "config.json").write_text(json.dumps(said))


@pytest.mark.parametrize(
    ("recorded", "typed", "frames"),
    [
        ({}, {}, 200_000_000),
        ({"annealing_frames": "none"}, {}, None),
        ({"annealing_frames": "640"}, {}, 640),
        ({"annealing_frames": "640"}, {EVERY_AGENT: {"annealing_frames": "none"}}, None),
        ({"annealing_frames": "none"}, {EVERY_AGENT: {"annealing_frames": "9"}}, 9),
        ({"annealing_frames": "640"}, {"impala": {"annealing_frames": "9"}}, 9),
    ],
)
def test_a_run_goes_on_with_its_horizon_or_a_new_one(
    recorded: dict[str, str],
    typed: dict[str, dict[str, str]],
    frames: int | None,
    tmp_path: pathlib.Path,
) -> None:
    run = _resolve("r2d2,impala", "catch", recorded)
    _record(tmp_path, run)
    given = _given(run_dir=str(tmp_path), env=None, preset=None)
    resumed = resuming.resumed(given, typed)
    expected = dataclasses.replace(run.configs["impala"], annealing_frames=frames)
    assert resumed.configs == run.configs | {"impala": expected}


@pytest.mark.parametrize(
    ("env", "replay_fraction", "updates", "frames"),
    [
        (PONG, 0.0, 78_125, 78_125 * 4 * 8 * 16),
        (PONG, 0.5, 78_125, 78_125 * 4 * 4 * 16),
        ("catch", 0.0, 1_000_000, 1_000_000 * 8 * 16),
    ],
)
def test_a_horizon_that_was_recorded_in_updates_stays_that(
    env: str, replay_fraction: float, updates: int, frames: int, tmp_path: pathlib.Path
) -> None:
    run = _resolve("impala", env, {"impala.replay_fraction": str(replay_fraction)})
    said = json.loads(run.to_json())
    for new in ("annealing_frames", "final_learning_rate", "frames_per_step"):
        del said["configs"]["impala"][new]
    said["configs"]["impala"]["annealing_steps"] = updates
    (tmp_path / "config.json").write_text(json.dumps(said))
    config = settings.load(tmp_path).configs["impala"]
    assert config == dataclasses.replace(run.configs["impala"], annealing_frames=frames)
    assert config.annealing_updates == updates


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (dict(annealing_steps="x"), "configs.impala.annealing_steps is no field here, the nearest"),
        (dict(annealing_steps=0), "configs.impala.annealing_steps is no field here, the nearest"),
        (dict(annealing_steps=9, length="x"), "configs.impala.length must be a whole number"),
        (dict(annealing_steps=9, length=0), "configs.impala.length must be a whole number from 1"),
        (dict(annealing_steps=2**62), "configs.impala.annealing_frames must be a whole number"),
    ],
)
def test_a_horizon_in_updates_that_cannot_be_is_refused(
    changes: dict[str, Any], said: str, tmp_path: pathlib.Path
) -> None:
    _record(tmp_path, _resolve("impala", PONG, {}), **changes)
    with pytest.raises(SettingsError) as error:
        settings.load(tmp_path)
    assert said in str(error.value)
