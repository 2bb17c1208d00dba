"""STAC and STACX as the rest of the system sees them (Zahavy et al., NeurIPS 2020)."""

from acme import specs

from agents.contract import Agent
from agents.impala import agent as impala
from agents.single_process import SingleProcessAgent
from agents.stac.config import ATARI, Config
from agents.stac.learner import StacUpdate
from agents.stac.network import make_network


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
    return impala.make(config, name, make_network=make_network, make_update=_make_update)


def _make_update(
    config: Config, make_network: impala.MakeNetwork, environment_spec: specs.EnvironmentSpec
) -> StacUpdate:
    network = make_network(environment_spec)
    lagging = make_network(environment_spec) if config.policy_lag else None
    return StacUpdate(network, config, lagging_network=lagging)
