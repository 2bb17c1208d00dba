"""PopArt-IMPALA as the rest of the system sees it (Hessel et al., AAAI 2019)."""

import functools

from acme import specs

from agents.contract import Agent
from agents.impala import builder as impala
from agents.impala import network as networks
from agents.networks.network import RecurrentNetwork, choices_of
from agents.popart.config import Config
from agents.popart.statistics import PopArt


def make(config: Config, name: str = "popart") -> Agent:
    """The agent of a config: IMPALA with a value for each task, normalised or not.

    Args:
      config: hyperparameters; `ATARI` and `DMLAB` are the paper's, `MULTIHEAD_ATARI` and
        `MULTIHEAD_DMLAB` its baseline without normalisation.
      name: of the agent, its queue and its log; its replay, if any, is `<name>_replay`.
    """
    make_update = functools.partial(
        impala.make_update,
        make_normaliser=functools.partial(PopArt, config=config) if config.normalise else None,
    )
    return impala.make(config, name, make_network=_make_network, make_update=make_update)


def _make_network(config: Config, environment_spec: specs.EnvironmentSpec) -> RecurrentNetwork:
    choices_of(environment_spec.actions)  # raises ValueError for vectors
    return networks.make_network(config, environment_spec, config.num_tasks)
