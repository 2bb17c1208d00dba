"""Run folders as a run leaves them, made in a second: agents that have learned nothing."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agents.batches import Fetched
from agents.contract import Update
from agents.learner import Learner
from run_folder import building, checkpoints, saver, settings
from run_folder.settings import Settings
from tests.run_folder.saving import COUNTS

_SMALL: Mapping[str, Mapping[str, str]] = {
    "r2d2": {"lstm_size": "8", "head_size": "8"},
    "r2d2_feedforward": {"head_size": "8"},
    "impala": {"lstm_size": "8"},
    "popart": {"lstm_size": "8"},
}


def resolve(
    agent: str = "r2d2", overrides: Mapping[str, str] | None = None, **given: Any
) -> Settings:
    """Settings of a run on catch with the local preset; fields of its first agent as overridden."""
    values = dict(agent=agent, env="catch", run_dir="/run", preset="local") | given
    return settings.resolve(values, {agent.partition(",")[0]: overrides} if overrides else {})


def settings_of(
    folder: pathlib.Path,
    agent: str,
    env: str,
    overrides: Mapping[str, str] | None = None,
    **given: Any,
) -> Settings:
    """Settings of a run on two cores with small networks; each agent's fields as overridden."""
    small = {name: {**_SMALL[name], **(overrides or {})} for name in agent.split(",")}
    values = dict(agent=agent, env=env, run_dir=str(folder), preset="local", **given)
    return settings.resolve(values, small)


def save(
    folder: pathlib.Path,
    agent: str = "r2d2",
    env: str = "catch",
    steps: Sequence[int] = (7,),
    **given: Any,
) -> Settings:
    """A run that was saved at these learner steps, each time with other parameters."""
    run = settings_of(folder, agent, env, **given)
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "config.json").write_text(run.to_json())
    spec = building.environment_spec(run)
    for name in run.agents:
        update = building.make_agent(run, name).make_update(spec)
        writer = saver.Saver(
            folder / "checkpoints",
            name,
            Learner(update, Fetched(iter(()))).write_checkpoint,
            [],
            1,
            None,
            checkpoints.manifest_name(name, run.paced_by),
        )
        for step in steps:
            set_parameters(update, step)
            writer.save(step, COUNTS | {"actor_steps": 100.0 * step})
    return run


def set_parameters(update: Update, step: int) -> None:
    """Gives an update the parameters that `save` has at a step."""
    rng = np.random.default_rng(step)
    for variable in update.network.trainable_variables:
        variable.assign(rng.normal(size=variable.shape, scale=0.5))
