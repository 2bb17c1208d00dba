"""What a command line, a preset and a recorded run amount to."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tree

from environments.dm import make_environment_spec
from environments.dmlab import environment as dmlab
from replay import dataset, tables
from run_folder import building, catalogue, settings
from tests.eager import eagerly

DMLAB = "dmlab:seekavoid_arena_01"
ENVIRONMENTS = ("catch", "memory:recall", "memory:cartpole", "gym:CartPole-v1", "atari:pong", DMLAB)
LANGUAGE = "dmlab:language_answer_quantitative_question"


@pytest.fixture(autouse=True)
def _with_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """That nothing here starts."""
    monkeypatch.setattr(dmlab, "installed", lambda: True)


def _given(**values: Any) -> dict[str, Any]:
    names = [f.name for f in dataclasses.fields(settings.Settings) if f.name != "configs"]
    return dict.fromkeys(names) | dict(env="catch", run_dir="/run", preset="local") | values


def test_the_paper_preset_changes_nothing_in_any_config() -> None:
    for name in catalogue.AGENTS:
        run = settings.resolve(_given(agent=name, preset="paper"), {})
        assert run.configs == {name: catalogue.config(name, "catch")}
    assert (run.num_actors, run.full_action_space) == (256, True)


def test_the_local_preset_scales_to_one_machine() -> None:
    run = settings.resolve(_given(agent="r2d2", env="atari:pong"), {})
    assert (run.num_actors, run.full_action_space) == (32, False)
    assert run.configs["r2d2"].torso == "shallow"
    assert run.configs["r2d2"].samples_per_insert is not None
    assert settings.resolve(_given(agent="r2d2"), {}).configs["r2d2"].torso == "mlp"


@pytest.mark.parametrize(
    ("agent", "env", "num_actors"),
    [
        ("impala", "atari:pong,atari:breakout", 32),
        ("impala", "atari:pong,atari:breakout,atari:qbert", 33),
        ("impala", "atari57", 57),
        ("r2d2,impala", "atari:pong,atari:breakout,atari:qbert", 36),
        ("r2d2,impala", "atari57", 114),
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
    [
        ("r2d2", DMLAB, 8, 2),
        ("r2d2,popart", DMLAB, 8, 2),
        ("popart", f"{DMLAB},{LANGUAGE}", 8, 0),
        ("popart", "dmlab30", 30, 0),
        ("r2d2,popart", "dmlab30", 60, 0),
    ],
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
        (dict(agent="multihead_impala"), True),
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
    found = {name: catalogue.config(name, DMLAB) for name in catalogue.AGENTS}
    assert {n: (c.torso, c.reward_transform) for n, c in found.items()} == expected
    assert all(config.frame_stack == 1 for config in found.values())


def test_flags_beat_what_follows_from_the_tasks() -> None:
    given = _given(agent="impala", env="atari:pong,atari:qbert", num_actors=2, actors_per_node=1)
    run = settings.resolve(given | dict(full_action_space=False, evaluation_episodes=3), {})
    assert (run.num_actors, run.actors_per_node) == (2, 1)
    assert (run.full_action_space, run.evaluation_episodes) == (False, 3)
    assert run.tasks == ("atari:pong", "atari:qbert")


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
        (dict(env="catch,"), "''"),
    ],
)
def test_every_acting_agent_plays_every_task(given: dict[str, Any], said: str) -> None:
    values = _given(agent="impala", env="atari57") | given
    if not said:
        settings.resolve(values, {})
        return
    with pytest.raises(settings.SettingsError, match=said):
        settings.resolve(values, {})


def test_a_preset_needs_a_known_name() -> None:
    with pytest.raises(settings.SettingsError, match="--preset must be one of local, paper, got"):
        settings.resolve(_given(agent="r2d2", preset="tiny"), {})


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


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("learning_rate", "3e-4", 3e-4),
        ("burn_in", "0", 0),
        ("samples_per_insert", "2", 2.0),
        ("samples_per_insert", "None", None),
        ("stored_state", "False", False),
        ("stored_state", "1", True),
        ("hidden_sizes", "8", (8,)),
        ("hidden_sizes", "8,16", (8, 16)),
        ("life_loss", "roll", "roll"),
    ],
)
def test_text_becomes_a_value_of_the_fields_type(field: str, text: str, value: Any) -> None:
    made = settings.make_configs(
        "catch", catalogue.named("r2d2"), {"r2d2": {}}, {"r2d2": {field: text}}
    )
    config = made["r2d2"]
    assert getattr(config, field) == value
    assert type(getattr(config, field)) is type(value)


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


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.parametrize("name", catalogue.AGENTS)
def test_every_agent_learns_on_every_kind_of_environment(name: str, env: str) -> None:
    small = {"batch_size": "2", "burn_in": "0", "length": "2"}
    if reads_queue := hasattr(catalogue.config(name, env), "queue_size"):
        small["queue_size"] = "4"
    else:
        small["period"] = "2"  # a queue's unrolls follow one another
    run = settings.resolve(_given(agent=name, env=env), {name: small})
    agent = building.make_agent(run, name)
    spec = make_environment_spec(env, full_action_space=run.full_action_space)
    core_state = building.core_state_spec(agent, spec)
    batches = dataset.make_dataset(
        ["localhost:1"],
        agent.tables,
        spec,
        core_state,
        tables.block_layout(agent.tables),
        agent.batch_sizes,
    )
    batch = tree.map_structure(
        lambda s: tf.zeros([d or agent.batch_size for d in s.shape], s.dtype), batches.element_spec
    )
    batch = batch._replace(
        probability=tf.ones_like(batch.probability), table_size=tf.ones_like(batch.table_size)
    )
    with eagerly():
        priorities, metrics = agent.make_update(spec)(batch)
    assert (priorities is None) == reads_queue
    assert priorities is None or priorities.shape == (2,)
    assert all(np.isfinite(value).all() for value in metrics.values())
    assert {"loss", "parameter_lag"} <= set(metrics)
