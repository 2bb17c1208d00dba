"""A command line, a preset and a recorded run give settings, or are refused by flag and field."""

import contextlib
import dataclasses
import json
import pathlib
from collections import Counter
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from environments import scores
from environments.dm import make_environment_spec
from environments.dmlab import environment as dmlab
from run_folder import building, catalogue, resuming, settings
from run_folder.settings import EVERY_AGENT, Crew, Settings, SettingsError
from tests.eager import eagerly
from tests.launch.graph.test_learner_node import zeros_of
from tests.run_folder import saved_runs

DMLAB = "dmlab:seekavoid_arena_01"
ENVIRONMENTS = ("catch", "gym:CartPole-v1", "atari:pong", DMLAB)  # of each kind
LANGUAGE = "dmlab:language_answer_quantitative_question"
OF_EACH_KIND = ("r2d2", "impala", "popart", "stac")  # others are one of these with other values


@pytest.fixture(autouse=True)
def _with_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings for DMLab need its engine to be installed; nothing here starts one."""
    monkeypatch.setattr(dmlab, "installed", lambda: True)


def _given(**values: Any) -> dict[str, Any]:
    return dict(env="catch", run_dir="/run", preset="local") | values


def test_the_paper_preset_changes_nothing_in_any_config() -> None:
    for name in catalogue.AGENTS:
        run = settings.resolve(_given(agent=name, preset="paper"), {})
        assert run.configs == {name: catalogue.config(name, "catch")}
    assert (run.num_actors, run.full_action_space) == (256, True)


@pytest.mark.parametrize(
    ("agent", "env", "num_actors"),
    [
        ("impala", "atari:pong,atari:breakout,atari:qbert", 33),
        ("impala", "atari57", 57),
        ("r2d2,impala", "atari:pong,atari:breakout,atari:qbert", 36),
        ("r2d2,impala,r2d2_plus", "catch", 32),
    ],
)
def test_the_local_preset_plays_each_of_several_tasks_equally_often(
    agent: str, env: str, num_actors: int
) -> None:
    run = settings.resolve(_given(agent=agent, env=env), {})
    several = env != "catch"
    assert (run.num_actors, run.actors_per_node) == (num_actors, num_actors)
    assert (run.full_action_space, run.evaluation_episodes) == (several, 1 if several else 4)
    paper = settings.resolve(_given(agent=agent, env=env, preset="paper"), {})
    assert (paper.num_actors, paper.actors_per_node, paper.evaluation_episodes) == (256, 1, 10)


@pytest.mark.parametrize(
    ("agent", "env", "num_actors", "evaluation_episodes"),
    [("r2d2", DMLAB, 8, 2), ("popart", f"{DMLAB},{LANGUAGE}", 8, 0), ("popart", "dmlab30", 30, 0)],
)
def test_the_local_preset_starts_few_engines(
    agent: str, env: str, num_actors: int, evaluation_episodes: int
) -> None:
    run = settings.resolve(_given(agent=agent, env=env), {})
    assert (run.num_actors, run.evaluation_episodes) == (num_actors, evaluation_episodes)
    assert run.actors_per_node <= 4
    assert all(config.frame_stack == 1 for config in run.configs.values())


@pytest.mark.parametrize("preset", ["local", "paper"])
@pytest.mark.parametrize(
    ("given", "full"),
    [
        (dict(agent="impala"), False),  # Espeholt et al. 2018, Table C.2
        (dict(agent="popart"), True),  # Hessel et al. 2018, Table 2
        (dict(agent="r2d2"), True),  # Kapturowski et al. 2019, Section 2.3
        (dict(agent="r2d2,impala"), True),
        (dict(agent="r2d2,impala", act_with="impala"), False),
        (dict(agent="impala", full_action_space=True), True),
    ],
)
def test_agents_have_their_papers_actions_on_dmlab(
    given: dict[str, Any], full: bool, preset: str
) -> None:
    run = settings.resolve(_given(env=DMLAB, preset=preset, **given), {})
    assert run.full_action_space == full


def test_on_dmlab_agents_have_their_papers_network_and_rewards() -> None:
    """R2D2's Sections 2.3 and 4.2; Table C.3 of IMPALA; Tables 4 and 7 of PopArt."""
    expected = {
        "r2d2": ("dqn", "none"),
        "r2d2_plus": ("resnet", "asymmetric"),
        "r2d2_feedforward": ("dqn", "none"),
        "impala": ("resnet", "asymmetric"),
        "multihead_impala": ("resnet", "asymmetric"),
        "popart": ("resnet", "asymmetric"),
        "stac": ("resnet", "asymmetric"),
        "stacx": ("resnet", "asymmetric"),
    }
    found = {name: catalogue.config(name, DMLAB) for name in expected}
    assert {n: (c.torso, c.reward_transform) for n, c in found.items()} == expected
    assert all(config.frame_stack == 1 for config in found.values())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (dict(num_actors=56), r"--env=atari57 needs at least 57 actors .*got --num_actors=56\."),
        (
            dict(agent="impala,r2d2", num_actors=113),
            "--act_with=impala,r2d2 .* at least 114 actors",
        ),
        (dict(agent="impala,r2d2", act_with="r2d2", num_actors=57), ""),
        (dict(preset="paper", agent="r2d2,impala"), ""),
        (dict(env="catch,catch"), "'catch'"),
        (dict(env="catch,katch"), "'katch'"),
    ],
)
def test_every_acting_agent_plays_every_task(given: dict[str, Any], said: str) -> None:
    expected = pytest.raises(SettingsError, match=said) if said else contextlib.nullcontext()
    with expected:
        settings.resolve(_given(agent="impala", env="atari57") | given, {})


def test_flags_beat_the_preset() -> None:
    overrides = {"r2d2": {"lstm_size": "16", "samples_per_insert": "none", "rescale": "false"}}
    run = settings.resolve(_given(agent="r2d2", num_actors=3, full_action_space=True), overrides)
    assert (run.num_actors, run.full_action_space) == (3, True)
    config = run.configs["r2d2"]
    assert config.lstm_size == 16
    assert config.samples_per_insert is None
    assert config.rescale is False
    local = catalogue.preset_config("local", catalogue.entry("r2d2"), "catch")
    assert config.length == local["length"]


def test_every_part_of_a_run_has_a_seed_of_its_own() -> None:
    runs = [settings.resolve(_given(agent="r2d2", seed=seed), {}) for seed in (0, 1)]
    seeds = [
        building.seed_of(run, role, index)
        for run in runs
        for role in ("network", "environment", "policy", "evaluation")
        for index in (0, 8)
    ]
    assert len(set(seeds)) == len(seeds)
    assert building.seed_of(runs[0], "policy", 8) == building.seed_of(runs[0], "policy", 8)


@pytest.mark.parametrize("name", ["popart", "multihead_impala"])
@pytest.mark.parametrize("env", ["catch", "catch,catch:large_rewards"])
def test_an_agent_with_a_head_per_task_has_as_many_as_there_are(name: str, env: str) -> None:
    run = settings.resolve(_given(agent=name, env=env), {})
    assert run.configs[name].num_tasks == len(run.tasks)
    assert run.configs[name].normalise == (name == "popart")
    for text in (len(run.tasks) - 1, len(run.tasks) + 1):
        with pytest.raises(settings.SettingsError, match=f"--{name}.num_tasks must be .* {text}"):
            settings.resolve(_given(agent=name, env=env), {name: {"num_tasks": str(text)}})


@pytest.mark.parametrize(
    ("preset", "typed", "period"),
    [
        ("local", {}, 32),
        ("local", {"length": "16"}, 16),
        ("local", {"length": "48"}, 32),
        ("local", {"length": "16", "period": "8"}, 8),
        ("paper", {"length": "20"}, 20),
    ],
)
def test_a_presets_period_gives_way_to_a_shorter_length(
    preset: str, typed: dict[str, str], period: int
) -> None:
    for owner in ("r2d2", settings.EVERY_AGENT):
        run = settings.resolve(_given(agent="r2d2", preset=preset), {owner: typed})
        assert run.configs["r2d2"].period == period


@pytest.mark.parametrize("length", ["0", "-1"])
def test_no_period_gives_way_to_a_length_that_cannot_be(length: str) -> None:
    with pytest.raises(settings.SettingsError, match=f"--r2d2.length .* {length}"):
        settings.resolve(_given(agent="r2d2"), {"r2d2": {"length": length}})


@pytest.mark.parametrize(
    ("name", "env"),
    [
        *(
            (name, env)
            for name in catalogue.AGENTS
            for env in (ENVIRONMENTS if name in OF_EACH_KIND else ENVIRONMENTS[::3])
            if name != "rsac"
        ),
        ("rsac", "gym:Pendulum-v1"),
    ],
)
def test_every_agent_learns_on_every_kind_of_environment(name: str, env: str) -> None:
    small = {"batch_size": "2", "burn_in": "0", "length": "2"}
    if reads_queue := hasattr(catalogue.config(name, env), "queue_size"):
        small["queue_size"] = "4"
    run = settings.resolve(_given(agent=name, env=env), {name: small})
    agent = building.make_agent(run, name)
    spec = make_environment_spec(env, full_action_space=run.full_action_space)
    batch = zeros_of(agent, spec)
    batch = batch._replace(
        probability=tf.ones_like(batch.probability), table_size=tf.ones_like(batch.table_size)
    )
    with eagerly():
        priorities, metrics = agent.make_update(spec)(batch)
    assert (priorities is None) == reads_queue
    assert priorities is None or priorities.shape == (2,)
    assert all(np.isfinite(value).all() for value in metrics.values())
    assert {"loss", "parameter_lag"} <= set(metrics)


TWO = "catch,catch:large_rewards"
FOUR = "atari:pong,atari:breakout,atari:qbert,atari:boxing"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            dict(num_actors=10, actors_per_node=3),
            [
                Crew("r2d2", (0, 1, 2), (0, 1, 2), 5, (0, 0, 0)),
                Crew("r2d2", (3, 4), (3, 4), 5, (0, 0)),
                Crew("impala", (5, 6, 7), (0, 1, 2), 5, (0, 0, 0)),
                Crew("impala", (8, 9), (3, 4), 5, (0, 0)),
            ],
        ),
        (
            dict(num_actors=2, actors_per_node=2, act_with="impala,r2d2"),
            [Crew("impala", (0,), (0,), 1, (0,)), Crew("r2d2", (1,), (0,), 1, (0,))],
        ),
        (
            dict(env=TWO, num_actors=9, actors_per_node=3),
            [
                Crew("r2d2", (0, 2, 4), (0, 2, 4), 5, (0, 0, 0)),
                Crew("r2d2", (1, 3), (1, 3), 5, (1, 1)),
                Crew("impala", (5, 7, 6), (0, 2, 1), 4, (0, 0, 1)),
                Crew("impala", (8,), (3,), 4, (1,)),
            ],
        ),
    ],
)
def test_actors_are_spread_over_agents_then_tasks_then_processes(
    given: dict[str, Any], expected: list[Crew]
) -> None:
    assert saved_runs.resolve("r2d2,impala", **given).crews() == expected


@pytest.mark.parametrize("agent", ["r2d2", "r2d2,impala"])
@pytest.mark.parametrize(
    ("env", "num_tasks", "num_actors", "actors_per_node"),
    [(TWO, 2, 16, 5), (FOUR, 4, 23, 8), (FOUR, 4, 8, 1), ("atari57", 57, 256, 32)],
)
def test_each_acting_agent_plays_every_task_evenly_with_policies_of_its_whole_range(
    agent: str, env: str, num_tasks: int, num_actors: int, actors_per_node: int
) -> None:
    run = saved_runs.resolve(agent, env=env, num_actors=num_actors, actors_per_node=actors_per_node)
    made = run.crews()
    assert sorted(actor for crew in made for actor in crew.actors) == list(range(num_actors))
    assert all(len(crew.actors) <= actors_per_node for crew in made)
    for name in run.acting:
        mine = [crew for crew in made if crew.agent == name]
        ranks = np.array([rank for crew in mine for rank in crew.ranks])
        tasks = np.array([task for crew in mine for task in crew.tasks])
        assert {crew.num_actors for crew in mine} == {len(ranks)}
        assert sorted(ranks) == list(range(len(ranks)))
        counts = Counter(tasks)
        assert set(counts) == set(range(num_tasks))
        assert max(counts.values()) - min(counts.values()) <= 1
        for task in range(num_tasks):  # its epsilons lie apart by no more than there are tasks
            of_task = np.sort(ranks[tasks == task])
            assert of_task[0] < num_tasks
            assert of_task[-1] >= len(ranks) - num_tasks
            assert set(np.diff(of_task)) <= {num_tasks}


PONG, ATARI57, LEVEL = "atari:pong", "atari57", "dmlab:seekavoid_arena_01"
GAMES = "atari:pong,atari:breakout,atari:qbert"
TWELVE_LEVELS = ",".join(scores.DMLAB30_TRAINING[:12])


def _typed(agent: str, env: str, typed: dict[str, str], preset: str = "local") -> Settings:
    """A run for which `--<field>=` or `--<agent>.<field>=` was typed."""
    overrides: dict[str, dict[str, str]] = {}
    for name, text in typed.items():
        of, _, field = name.rpartition(".")
        overrides.setdefault(of, {})[field] = text
    return settings.resolve(_given(agent=agent, env=env, preset=preset), overrides)


# On a game, a level, ten and more of DMLab-30's levels, and anything else.
@pytest.mark.parametrize(
    ("agent", "env", "preset", "frames", "updates"),
    [
        ("impala", PONG, "paper", 200e6, 200e6 / 4 / (32 * 20)),  # 78,125
        ("impala", GAMES, "paper", 600e6, 600e6 / 4 / (32 * 20)),
        ("impala", ATARI57, "paper", 11.4e9, 57 * 78_125),  # Section 5.3.2
        ("impala", LEVEL, "paper", 1e9, 1e9 / 4 / (32 * 100)),  # 78,125
        ("impala", TWELVE_LEVELS, "paper", 10e9, 781_250),
        ("popart", "dmlab30", "paper", 10e9, 781_250),
        ("impala", "catch", "local", 200e6, 200e6 / (8 * 64)),
        ("impala", "gym:CartPole-v1", "paper", 200e6, 200e6 / (32 * 20)),
        ("stacx", "gym:Pendulum-v1", "paper", 30e6, 125_000),
    ],
)
def test_every_run_has_the_papers_horizon(
    agent: str, env: str, preset: str, frames: float, updates: float
) -> None:
    config = _typed(agent, env, {}, preset).configs[agent]
    assert config.annealing_frames == frames
    assert config.annealing_updates == updates


@pytest.mark.parametrize("name", ["annealing_frames", "impala.annealing_frames"])
@pytest.mark.parametrize(("text", "value"), [("5120", 5_120), ("none", None), ("None", None)])
def test_both_flags_set_the_horizon(name: str, text: str, value: int | None) -> None:
    config = _typed("impala", PONG, {name: text}).configs["impala"]
    assert config.annealing_frames == value
    assert config.annealing_updates == (None if value is None else 10)


def test_one_flag_is_for_every_agent_that_anneals_and_an_agents_own_goes_before_it() -> None:
    typed = {"annealing_frames": "none", "popart.annealing_frames": "7", "impala.length": "8"}
    run = _typed("r2d2,impala,popart", "catch", typed)
    frames = {name: getattr(c, "annealing_frames", "") for name, c in run.configs.items()}
    assert frames == {"r2d2": "", "impala": None, "popart": 7}
    assert run.configs["impala"].length == 8
    plain = _typed("r2d2,impala,popart", "catch", {})
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
            {"popart.annealing_frames": "", "annealing_frames": "3"},
            "--popart.annealing_frames must be of type int or none, got ''.",
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
        _typed(agent, "catch", typed)
    assert str(error.value) == said


def _record(folder: pathlib.Path, run: Settings, **changes: Any) -> dict[str, Any]:
    """Writes config.json, with other fields of its last agent; returns what it says."""
    said: dict[str, Any] = json.loads(run.to_json())
    said["configs"][run.agents[-1]] |= changes
    (folder / "config.json").write_text(json.dumps(said))
    return said


@pytest.mark.parametrize(
    ("recorded", "typed", "frames"),
    [
        ({}, {}, 200_000_000),
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
    run = _typed("r2d2,impala", "catch", recorded)
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
        ("catch", 0.0, 1_000_000, 1_000_000 * 8 * 64),
    ],
)
def test_a_horizon_that_was_recorded_in_updates_stays_that(
    env: str, replay_fraction: float, updates: int, frames: int, tmp_path: pathlib.Path
) -> None:
    run = _typed("impala", env, {"impala.replay_fraction": str(replay_fraction)})
    said = _record(tmp_path, run, annealing_steps=updates)
    for new in ("annealing_frames", "final_learning_rate", "frames_per_step"):
        del said["configs"]["impala"][new]
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
    _record(tmp_path, _typed("impala", PONG, {}), **changes)
    with pytest.raises(SettingsError) as error:
        settings.load(tmp_path)
    assert said in str(error.value)


def test_config_json_gives_the_settings_back_wherever_it_was_moved(tmp_path: pathlib.Path) -> None:
    for name in catalogue.AGENTS:
        given = _given(agent=name, run_dir=str(tmp_path / "before"), max_actor_steps=7)
        run = settings.resolve(given, {name: {"hidden_sizes": "8,9"}})
        _record(tmp_path, run)
        assert settings.load(tmp_path) == dataclasses.replace(run, run_dir=str(tmp_path))


def test_a_run_recorded_before_a_setting_was_there_has_its_default(tmp_path: pathlib.Path) -> None:
    run = settings.resolve(_given(agent="r2d2", run_dir=str(tmp_path)), {})
    said = _record(tmp_path, run)
    del said["num_replay_shards"], said["configs"]["r2d2"]["precision"]
    (tmp_path / "config.json").write_text(json.dumps(said))
    assert settings.load(tmp_path) == run


def test_a_number_without_a_point_is_a_float_where_one_belongs(tmp_path: pathlib.Path) -> None:
    _record(tmp_path, _typed("impala", "catch", {}), learning_rate=1, max_gradient_norm=40)
    config = settings.load(tmp_path).configs["impala"]
    assert {type(value) for value in (config.learning_rate, config.max_gradient_norm)} == {float}


def test_a_run_of_what_is_not_installed_here_is_read(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = settings.resolve(_given(agent="r2d2", env=DMLAB, run_dir=str(tmp_path)), {})
    _record(tmp_path, run)
    monkeypatch.setattr(dmlab, "installed", lambda: False)
    assert settings.load(tmp_path) == run


GONE = object()  # a field that is missing


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        ("env", GONE, "env is missing: it must be text"),
        ("env", "katch", "Unknown environment 'katch': did you mean catch?"),
        ("agent", "impala", "agent must be r2d2,popart, as configs are named, got 'impala'"),
        ("preset", "tiny", "preset must be one of local, paper, got 'tiny'"),
        ("act_with", "impala", "act_with=impala names 'impala', but this run's agents are r2d2"),
        ("num_actors", GONE, "num_actors is missing: it must be a whole number"),
        ("num_actors", 2**31, "num_actors must be a whole number from 1 to 100,000, got 2147"),
        ("act_with", "\ud800", "act_with must be text, got '"),
        ("evaluation_minutes", 10**400, "evaluation_minutes must be a number from 0.001"),
        ("num_actor", 3, "num_actor is no field here, the nearest is num_actors"),
        ("configs", [], "configs must be an object, each anything, got []"),
        ("configs", {"r2d3": {}}, "agent must be r2d3, as configs are named, got 'r2d2,popart'"),
        ("configs.r2d2.length", 0, "configs.r2d2.length must be a whole number from 1 to 4,096"),
        ("configs.r2d2.hidden_sizes", [8, "x"], "got [8, 'x']"),
        ("configs.r2d2.lenght", 16, "configs.r2d2.lenght is no field here, the nearest is length"),
        ("configs.popart.num_tasks", 2, "configs.popart.num_tasks must be 1, as many as"),
    ],
)
def test_an_edited_config_json_is_refused_by_file_and_field(
    where: str, value: Any, said: str, tmp_path: pathlib.Path
) -> None:
    run = settings.resolve(_given(agent="r2d2,popart", run_dir=str(tmp_path)), {})
    recorded = json.loads(run.to_json())
    *above, name = where.split(".")
    inner = recorded
    for key in above:
        inner = inner[key]
    inner[name] = value
    if value is GONE:
        del inner[name]
    _refused(tmp_path, json.dumps(recorded).encode(), said)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "Expecting property name"),
        (b"[]", "it must be an object, got []"),
        (b"\xff", "can't decode byte 0xff"),
        (b"[" * 100_000, "its brackets are nested too deeply"),
    ],
)
def test_a_config_json_of_no_settings_is_refused(
    data: bytes, said: str, tmp_path: pathlib.Path
) -> None:
    _refused(tmp_path, data, said)


def _refused(folder: pathlib.Path, data: bytes, said: str) -> None:
    """Checks that a config.json is refused in a sentence."""
    (folder / "config.json").write_bytes(data)
    with pytest.raises(settings.SettingsError) as error:
        settings.load(folder)
    assert str(error.value).startswith(f"{folder / 'config.json'} cannot be read: ")
    assert said in str(error.value)
    assert str(error.value).endswith(".")
    assert not str(error.value).endswith("..")


@pytest.mark.parametrize(
    ("recorded", "typed", "expected"),
    [("auto", None, "auto"), ("gpu", "cpu", "cpu"), (None, None, "cpu"), (None, "gpu", "gpu")],
)
def test_a_run_older_than_actors_on_a_gpu_goes_on_without_one(
    recorded: str | None, typed: str | None, expected: str, tmp_path: pathlib.Path
) -> None:
    run = settings.resolve(_given(agent="impala", actor_device=recorded), {})
    said = _record(tmp_path, run)
    if recorded is None:
        del said["actor_device"]
        (tmp_path / "config.json").write_text(json.dumps(said))
    given = dict(run_dir=str(tmp_path), actor_device=typed)
    assert resuming.resumed(given, {}).actor_device == expected
