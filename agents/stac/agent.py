"""STAC and STACX as the rest of the system sees them (Zahavy et al., NeurIPS 2020)."""

import dataclasses
import functools
from collections.abc import Callable, Mapping

import tensorflow as tf
from acme import specs

from agents.actor import with_variables
from agents.contract import Agent
from agents.impala import agent as impala
from agents.networks.network import RecurrentNetwork
from agents.single_process import SingleProcessAgent
from agents.stac import network as networks
from agents.stac.config import ATARI, Config
from agents.stac.learner import StacUpdate


class STAC(SingleProcessAgent):
    """STAC in one process; STACX where the config has several heads, as `STACX_ATARI` does.

    The default config is the paper's for Atari, which wants an image.
    """

    def __init__(
        self, environment_spec: specs.EnvironmentSpec, config: Config = ATARI, *, seed: int = 0
    ) -> None:
        super().__init__(make(config), environment_spec, seed=seed)


def make(config: Config, name: str = "stac") -> Agent:
    """The agent of a config: IMPALA's stream, tables and policy, with another update.

    Args:
      config: hyperparameters; `agents.stac.config` has the paper's.
      name: of the agent, its queue and its log; its replay, if any, is `<name>_replay`.
    """
    make_network = functools.partial(_make_network, config)
    return dataclasses.replace(
        impala.make(config, name),
        make_network=make_network,
        make_update=functools.partial(_make_update, config, make_network),
        estimates=_estimates,
    )


def _estimates(
    update: StacUpdate, values: Mapping[str, tf.Tensor], task: int
) -> dict[str, tf.Tensor]:
    del update, task
    return {"V": values["value"][:, 0]}


def _make_network(config: Config, environment_spec: specs.EnvironmentSpec) -> RecurrentNetwork:
    network = networks.make_network(config, environment_spec)
    return with_variables(network, environment_spec, config.frame_stack)


def _make_update(
    config: Config,
    make_network: Callable[[specs.EnvironmentSpec], RecurrentNetwork],
    environment_spec: specs.EnvironmentSpec,
) -> StacUpdate:
    network = make_network(environment_spec)
    lagging = make_network(environment_spec) if config.policy_lag else None
    return StacUpdate(network, config, lagging_network=lagging)
