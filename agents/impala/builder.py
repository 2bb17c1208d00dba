"""IMPALA as the rest of the system sees it (Espeholt et al., ICML 2018)."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import sonnet as snt
import tensorflow as tf
from acme import specs

from agents.actor import with_variables
from agents.contract import Agent
from agents.impala import network as networks
from agents.impala import policy
from agents.impala.config import Config
from agents.impala.learner import ImpalaUpdate, Normaliser, VTraceUpdate
from agents.networks.network import RecurrentNetwork, num_discrete
from agents.networks.parts import image_of
from agents.pixel_control import PixelControl
from replay.structures import TableSpec

MakeNetwork = Callable[[specs.EnvironmentSpec], RecurrentNetwork]


def make_update(
    config: Config,
    make_network: MakeNetwork,
    environment_spec: specs.EnvironmentSpec,
    *,
    make_normaliser: Callable[[snt.Linear], Normaliser] | None = None,
) -> ImpalaUpdate:
    """The update of a config.

    Args:
      config: hyperparameters.
      make_network: makes a network with its variables.
      environment_spec: of one environment.
      make_normaliser: makes the values' normaliser from the layer that gives them; None for none.
    """
    network = make_network(environment_spec)
    assert isinstance(network.head, networks.ActorCriticHead)
    values = network.head.value_layer
    pixel_control = None
    if config.pixel_control_cost:
        image_shape = image_of(environment_spec.observations).shape
        num_actions = num_discrete(environment_spec.actions, "Pixel control")
        pixel_control = PixelControl(image_shape, num_actions, values.input_size)
    return ImpalaUpdate(
        network,
        config,
        lagging_network=make_network(environment_spec) if config.policy_lag else None,
        normaliser=make_normaliser(values) if make_normaliser else None,
        pixel_control=pixel_control,
    )


def make(
    config: Config,
    name: str = "impala",
    *,
    make_network: Callable[[Any, specs.EnvironmentSpec], RecurrentNetwork] = networks.make_network,
    make_update: Callable[[Any, MakeNetwork, specs.EnvironmentSpec], VTraceUpdate] = make_update,
) -> Agent:
    """The agent of a config: IMPALA, or another that has its stream, tables and policy.

    Args:
      config: hyperparameters; `ATARI` and `DMLAB` are the paper's, `CONTROL` and `CONTROL_IMAGE`
        STAC's paper's.
      name: of the agent, its queue and its log; its replay, if any, is `<name>_replay`.
      make_network: makes the config's network for an environment.
      make_update: makes the config's update, as the function of this name does.
    """

    def with_its_variables(environment_spec: specs.EnvironmentSpec) -> RecurrentNetwork:
        network = make_network(config, environment_spec)
        return with_variables(network, environment_spec, config.frame_stack)

    replayed = config.num_replayed
    tables = [TableSpec(name, "queue", config.layout, max_size=config.queue_size)]
    if replayed:
        replay = TableSpec(f"{name}_replay", "uniform", config.layout, max_size=config.replay_size)
        tables.append(replay)
    return Agent(
        name=name,
        config=config,
        tables=tuple(tables),
        batch_sizes=(config.batch_size - replayed, replayed) if replayed else (config.batch_size,),
        frame_stack=config.frame_stack,
        resets_on_life_loss=config.life_loss,
        variable_update_period=config.layout.period,
        make_network=with_its_variables,
        make_policy=policy.make_policy,
        make_evaluation_policy=policy.make_evaluation_policy,
        make_update=functools.partial(make_update, config, with_its_variables),
        environment_action=policy.environment_action,
        estimates=_estimates,
        can_be_several=True,
        is_recurrent=config.lstm_size > 0,
        masks_actions=True,
    )


def _estimates(
    update: VTraceUpdate, values: Mapping[str, tf.Tensor], task: int
) -> dict[str, tf.Tensor]:
    return {"V": update.values_of_task(values["value"], task)}
