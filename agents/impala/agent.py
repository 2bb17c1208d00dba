"""IMPALA as the rest of the system sees it (Espeholt et al., ICML 2018)."""

import functools

from acme import specs

from agents.actor import with_variables
from agents.contract import Agent
from agents.impala import network as networks
from agents.impala import policy
from agents.impala.config import ATARI, DMLAB, Config
from agents.impala.learner import ImpalaUpdate
from agents.networks import RecurrentNetwork
from agents.single_process import SingleProcessAgent
from replay.structures import TableSpec

__all__ = ["ATARI", "DMLAB", "IMPALA", "Config", "make"]


class IMPALA(SingleProcessAgent):
    """IMPALA in one process, for `acme.EnvironmentLoop`.

    Args:
      environment_spec: of the environment, as `acme.make_environment_spec` gives it.
      config: hyperparameters; the paper's for Atari by default, which want an image.
      seed: of parameters and policy.
    """

    def __init__(
        self, environment_spec: specs.EnvironmentSpec, config: Config = ATARI, *, seed: int = 0
    ) -> None:
        super().__init__(make(config), environment_spec, seed=seed)


def make(config: Config, name: str = "impala") -> Agent:
    """The agent of a config.

    Args:
      config: hyperparameters; `ATARI` and `DMLAB` are the paper's.
      name: of the agent, its queue and its log; its replay, if any, is `<name>_replay`.
    """
    replayed = config.num_replayed
    return Agent(
        name=name,
        config=config,
        tables=(_queue(config, name), _replay(config, name))[: 2 if replayed else 1],
        batch_sizes=(config.batch_size - replayed, replayed)[: 2 if replayed else 1],
        frame_stack=config.frame_stack,
        resets_on_life_loss=config.life_loss,
        variable_update_period=config.length,
        make_network=functools.partial(_make_network, config),
        make_policy=policy.make_policy,
        make_evaluation_policy=policy.make_sampling_policy,
        make_update=functools.partial(_make_update, config),
        initial_priority=None,
    )


def _queue(config: Config, name: str) -> TableSpec:
    return TableSpec(name, "queue", config.layout, max_size=config.queue_size)


def _replay(config: Config, name: str) -> TableSpec:
    return TableSpec(f"{name}_replay", "uniform", config.layout, max_size=config.replay_size)


def _make_network(config: Config, environment_spec: specs.EnvironmentSpec) -> RecurrentNetwork:
    network = networks.make_network(config, environment_spec.actions.num_values)
    return with_variables(network, environment_spec, config.frame_stack)


def _make_update(config: Config, environment_spec: specs.EnvironmentSpec) -> ImpalaUpdate:
    make_network = functools.partial(_make_network, config, environment_spec)
    lagging_network = make_network() if config.policy_lag else None
    return ImpalaUpdate(make_network(), lagging_network, config)
