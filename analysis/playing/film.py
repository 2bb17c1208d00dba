"""One episode of an evaluation, step by step, as somebody sees it who looks on."""

import contextlib
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from agents import actor, environment_loop
from agents.networks import network
from analysis.playing.evaluation import Player
from environments import screens
from replay.structures import Nest, Step


class Frame(NamedTuple):
    """What is seen at one step."""

    picture: np.ndarray  # uint8 [H, W, 3]
    step: int  # actor steps made so far
    score: float  # undiscounted return so far
    action: str  # what is done now; empty once the episode has ended
    probability: float  # with which the policy chose it
    estimates: dict[str, float]  # Q of the action or V, in the rewards' units; last the last ones


class _Onlooker:
    """Sees what the actor does. Implements `agents.actor.Writer`."""

    row: Step
    values: dict[str, np.ndarray]

    def append(
        self, step: Step, *, core_state: Nest, values: dict[str, np.ndarray], learner_step: int
    ) -> None:
        """Remembers the newest row."""
        self.row, self.values = step, values


def shoot(player: Player, task: str) -> tuple[int, Iterator[Frame]]:
    """Plays one episode in front of a camera.

    Args:
      player: who plays.
      task: one of `player.tasks`.

    Returns:
      Frames per second, and the frames: one for each step, then the last picture.
    """
    screen = screens.make(
        task,
        seed=player.played.seed,
        full_action_space=player.run.full_action_space,
        full_rendering=player.run.full_rendering,
    )
    return screen.frames_per_second, _frames(player, task, screen)


def _frames(player: Player, task: str, screen: screens.Screen) -> Iterator[Frame]:
    onlooker = _Onlooker()
    seed, index = player.played.seed, player.tasks.index(task)
    evaluator = actor.make_evaluator(
        player.agent, player.network, num_environments=1, seed=seed, writer=onlooker
    )
    with contextlib.closing(screen.env):
        loop = environment_loop.VectorEnvironmentLoop(screen.env, evaluator, [task])
        score, ended = 0.0, False
        is_discrete = network.is_discrete(player.network.actions)
        told: dict[str, float] = {}
        for step in itertools.count():
            picture = _picture(screen)
            if ended:
                yield Frame(picture, step, score, "", 1.0, told)
                return
            ended = bool(loop.step()[1])
            estimates = player.agent.estimates(player.update, onlooker.values, index)
            told = {name: float(value[0]) for name, value in estimates.items()}
            yield Frame(
                picture,
                step,
                score,
                screen.action_name(_given(player, onlooker.row.action)[0]),
                # Of a bounded vector there is only a density, which is no probability.
                float(np.exp(onlooker.row.log_probability[0])) if is_discrete else 1.0,
                told,
            )
            score += float(onlooker.row.reward[0])


def _given(player: Player, action: np.ndarray) -> np.ndarray:
    """What the environment is given for actions `[N, ...]` as a row has them."""
    environment_action = player.agent.environment_action
    return environment_action(action, player.network.actions) if environment_action else action


def _picture(screen: screens.Screen) -> np.ndarray:
    rendered = screen.env.render()
    assert rendered is not None
    return np.array(rendered[0])  # a copy: an environment may draw over it
