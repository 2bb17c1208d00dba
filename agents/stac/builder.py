"""STAC and STACX as the rest of the system sees them (Zahavy et al., NeurIPS 2020)."""

from acme import specs

from agents.contract import Agent
from agents.impala import builder as impala
from agents.stac.config import Config
from agents.stac.learner import StacUpdate
from agents.stac.network import make_network


def make(config: Config, name: str = "stac") -> Agent:
    """The agent of a config: IMPALA's stream, tables and policy, with another update.

    Args:
      config: hyperparameters; `agents.stac.config` has the paper's.
      name: of the agent, its queue and its log; its replay, if any, is `<name>_replay`.
    """
    return impala.make(config, name, make_network=make_network, make_update=_make_update)


def _make_update(
    config: Config, make_network: impala.MakeNetwork, environment_spec: specs.EnvironmentSpec
) -> StacUpdate:
    network = make_network(environment_spec)
    lagging = make_network(environment_spec) if config.policy_lag else None
    return StacUpdate(network, config, lagging_network=lagging)
