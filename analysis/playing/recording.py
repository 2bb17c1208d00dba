"""Records episodes, of a run's policy, a function of anybody's or a person, into a folder.

`play` steps the environment, and `Recorder` around it keeps what is seen, done and paid.
"""

import contextlib
import inspect
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tree
from acme import specs
from gymnasium.vector import VectorEnv, VectorWrapper

from agents import environment_loop
from analysis.playing.evaluation import Player
from environments import suites
from environments.copies.vector import ACTION_MASK, Begun, has_mask
from environments.copies.vector import Step as Outcome
from replay.structures import LAST
from run_folder import recordings
from run_folder.recordings import Episode
from run_folder.settings import SettingsError

Choose = Callable[[Any], Any]  # an observation -> an action, both as `environments.suites` has them

_AT_ONCE = 16  # environments of a run's policy


class Recorder(VectorWrapper):
    """Keeps the steps of N environments until each episode's end.

    Attributes:
      ended: the newest whole episode of each environment that has one.
    """

    def __init__(self, env: VectorEnv) -> None:
        super().__init__(env)
        self.ended: dict[int, Episode] = {}
        self._lives = np.zeros(env.num_envs, np.uint8)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Begun:
        observation, infos = self.env.reset(seed=seed, options=options)
        self._rows: list[list[tuple[Any, ...]]] = [[] for _ in range(self.num_envs)]
        self._over = np.zeros(self.num_envs, bool)
        self._see(observation, infos)
        return observation, infos

    def step(self, actions: np.ndarray) -> Outcome:
        before, lives = self._observation, self._lives
        observation, rewards, terminated, truncated, infos = self.env.step(actions)
        self._see(observation, infos)
        over = terminated | truncated
        for n in np.flatnonzero(~self._over):
            row = (actions[n], np.float32(rewards[n]), terminated[n], truncated[n])
            self._rows[n].append((_row(before, n), *row, lives[n]))
            if over[n]:
                self.ended[int(n)] = self._whole(n)
                self._rows[n] = []
        self._over = over
        return observation, rewards, terminated, truncated, infos

    def _see(self, observation: Any, infos: dict[str, Any]) -> None:
        self._observation = tree.map_structure(np.array, observation)  # which may be used again
        self._lives = np.array(infos.get("lives", self._lives), np.uint8)

    def _whole(self, n: int) -> Episode:
        seen, actions, rewards, terminated, truncated, lives = zip(*self._rows[n], strict=True)
        last = _row(self._observation, n)
        return Episode(
            tree.map_structure(lambda *leaves: np.stack(leaves), *seen, last),
            np.stack(actions),
            np.stack(rewards),
            np.stack(terminated),
            np.stack(truncated),
            np.stack([*lives, self._lives[n]]),
        )


class Chooser:
    """A loop's actor of one environment that does what a function says."""

    def __init__(self, choose: Choose, env: VectorEnv) -> None:
        self._choose, self._space = choose, env.single_action_space
        self._none = np.zeros((1, *(self._space.shape or ())), self._space.dtype)

    def act(self, observation: Any, step_type: np.ndarray, lives: np.ndarray) -> np.ndarray:
        """The action, `[1]` or `[1, D]`; any after an episode's end."""
        if step_type[0] == LAST:
            return self._none
        seen = _row(observation, 0)
        chosen = self._choose(seen)
        action = np.asarray(chosen)
        if not np.can_cast(action.dtype, self._space.dtype, "same_kind") or not (
            self._space.contains(action.astype(self._space.dtype))
        ):
            raise SettingsError(f"The policy must give an action of {self._space}, got {chosen!r}.")
        if has_mask(seen) and not seen[ACTION_MASK][action]:
            raise SettingsError(
                f"The policy must give a legal action, got {chosen!r}: {ACTION_MASK} is "
                f"{seen[ACTION_MASK].tolist()}."
            )
        return action.astype(self._space.dtype)[np.newaxis]

    def observe(self, reward: np.ndarray, continuation: np.ndarray) -> None:
        """Nothing is learned."""

    def update(self) -> None:
        """Nothing is fetched."""


def of_run(player: Player, task: str, count: int) -> Iterator[Episode]:
    """Episodes of a run's policy."""
    at_once = min(_AT_ONCE, count)
    environments = player.environments(task, at_once)
    yield from _played(environments, player.actor(at_once), task, count)


def of_function(
    choose: Callable[..., Any], env: VectorEnv, task: str, count: int
) -> Iterator[Episode]:
    """Episodes of one environment in which a function chooses.

    Args:
      choose: observation -> action; one with an argument `env` is given the `gymnasium.Env` too.
      env: of one environment, as `suites.make` makes it; it is closed.
      task: its name.
      count: how many.

    Raises:
      SettingsError: it gives no action, or wants a `gymnasium.Env` where there is none.
    """
    if "env" in inspect.signature(choose).parameters:
        if not suites.made_singly(task):
            raise SettingsError(f"--policy takes env, but {task} has no gymnasium.Env of its own.")
        choose = _with_env(choose, env)
    yield from _played(env, Chooser(choose, env), task, count)


def _with_env(choose: Callable[..., Any], env: VectorEnv) -> Choose:
    copies: Any = env.unwrapped
    return lambda observation: choose(observation, env=copies.envs[0].unwrapped)


def _played(env: VectorEnv, player: Any, task: str, count: int) -> Iterator[Episode]:
    with contextlib.closing(Recorder(env)) as recorder:
        loop = environment_loop.VectorEnvironmentLoop(recorder, player, [task] * env.num_envs)
        for _, ended in loop.play_in_all(count):
            yield from (recorder.ended[episode.environment] for episode in ended)


def record(
    folder: pathlib.Path,
    task: str,
    spec: specs.EnvironmentSpec,
    wanted: int,
    play: Callable[[int], Iterator[Episode]],
    say: Callable[[str], None],
) -> None:
    """Adds episodes to a folder until it holds so many, and tells of their returns.

    Args:
      folder: that is made, or holds some of them.
      task: what is played.
      spec: of the task.
      wanted: episodes, with those that it holds.
      play: gives so many episodes.
      say: is told a line.

    Raises:
      SettingsError: it holds other episodes, another process adds to it, or what is played cannot
        be learned from.
    """
    held = recordings.begin(folder, task, spec)
    with recordings.alone(folder):
        for episode in play(wanted - held) if held < wanted else ():
            actions = episode.actions.astype(spec.actions.dtype)
            episode = episode._replace(actions=actions)
            try:
                recordings.check_steps(episode, spec)
            except ValueError as error:
                raise SettingsError(f"An episode of {task} is not recorded: {error}.") from None
            recordings.append(folder, episode)
    found = [recordings.read(path, spec) for path in recordings.files(folder)]
    if not found:
        raise SettingsError(f"{folder} holds no episode yet, and none was there to be added.")
    returns = np.array([episode.rewards.sum() for episode in found])
    steps = sum(len(episode.rewards) for episode in found)
    say(
        f"{folder}: {len(found)} episodes of {task} ({held} were there), {steps:,} steps, mean "
        f"return {returns.mean():.2f}, from {returns.min():.1f} to {returns.max():.1f}"
    )


def _row(observation: Any, n: int) -> Any:
    return tree.map_structure(lambda leaf: leaf[n], observation)
