"""Recurrent SAC as the rest of the system sees it."""

from acme import specs

from agents.actor import with_variables
from agents.contract import Agent
from agents.impala.policy import environment_action
from agents.networks.network import RecurrentNetwork
from agents.rsac import losses, policy
from agents.rsac import network as networks
from agents.rsac.config import Config
from agents.rsac.learner import SACUpdate
from replay.structures import TableSpec


def make(config: Config, name: str = "rsac") -> Agent:
    """The agent of a config.

    Args:
      config: hyperparameters; `CONTROL` and `CONTROL_IMAGE` are the papers'.
      name: of the agent, its table and its log.
    """

    def make_network(environment_spec: specs.EnvironmentSpec) -> RecurrentNetwork:
        network = networks.make_network(config, environment_spec)
        return with_variables(network, environment_spec, config.frame_stack)

    table = TableSpec(
        name=name,
        kind="prioritized",
        layout=config.layout,
        max_size=config.replay_size,
        min_size=config.min_replay_size,
        samples_per_insert=config.samples_per_insert,
        priority_exponent=config.priority_exponent,
    )
    return Agent(
        name=name,
        config=config,
        tables=(table,),
        batch_sizes=(config.batch_size,),
        frame_stack=config.frame_stack,
        variable_update_period=config.variable_update_period,
        make_network=make_network,
        make_policy=policy.make_policy,
        make_evaluation_policy=policy.make_evaluation_policy,
        make_update=lambda spec: SACUpdate(make_network(spec), make_network(spec), config),
        initial_priority=losses.make_initial_priority(config),
        environment_action=environment_action,
        estimates=policy.estimates,
        can_be_several=True,
        is_recurrent=config.lstm_size > 0,
    )
