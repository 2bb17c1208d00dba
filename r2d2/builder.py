"""R2D2 as the rest of the system sees it (Kapturowski et al., ICLR 2019)."""

import functools
import importlib

from acme import specs

from agents.actor import with_variables
from agents.contract import Agent
from agents.networks.network import RecurrentNetwork
from agents.prioritized import make_initial_priority, prioritized_table
from r2d2 import network as networks
from r2d2 import policy, targets
from r2d2.config import Config
from r2d2.learner import R2D2Update


def make(config: Config, name: str = "r2d2") -> Agent:
    """The agent of a config.

    Args:
      config: hyperparameters; `VARIANTS` holds the paper's.
      name: of the agent, its table and its log.
    """

    def make_network(environment_spec: specs.EnvironmentSpec) -> RecurrentNetwork:
        network = networks.make_network(config, environment_spec)
        return with_variables(network, environment_spec, config.frame_stack)

    agent = Agent(
        name=name,
        config=config,
        tables=(prioritized_table(name, config),),
        batch_sizes=(config.batch_size,),
        frame_stack=config.frame_stack,
        resets_on_life_loss=config.life_loss == "reset",
        variable_update_period=config.variable_update_period,
        make_network=make_network,
        make_policy=functools.partial(policy.make_policy, config),
        make_evaluation_policy=functools.partial(policy.make_evaluation_policy, config),
        make_update=lambda spec: R2D2Update(make_network(spec), make_network(spec), config),
        make_following=policy.make_following,
        # An actor's double-Q value of a row is its largest action value.
        initial_priority=make_initial_priority(config, ("q_max",), targets.item_targets),
        estimates=lambda update, values, task: policy.estimates(config, values),
        can_be_several=True,
        has_action_values=True,
        is_recurrent=config.lstm_size > 0,
        masks_actions=True,
    )
    is_usual = not (config.trust_region or config.normalise_td or config.munchausen_alpha)
    if is_usual and config.returns == "n_step":
        return agent
    changed: Agent = importlib.import_module("r2d2.returns").changed(agent, make_network)
    return changed
