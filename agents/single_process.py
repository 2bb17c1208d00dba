"""The library form of an agent, in one process: it acts, and learns when a step is due."""

import dataclasses
import errno
import os
import pathlib
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import dm_env
import numpy as np
import tensorflow as tf
import tree
from absl import flags
from acme import core, specs
from gymnasium.vector import AutoresetMode, VectorEnv

from agents.actor import RecurrentActor, make_evaluator
from agents.contract import Agent, Update
from agents.environment_loop import Episode, VectorEnvironmentLoop
from agents.finite import check_rewards
from agents.in_process import InProcess
from agents.networks.parts import masks
from environments.copies import conversion
from environments.copies.from_dm import space_of
from environments.copies.spec import spec_of
from environments.copies.vector import has_mask
from replay import tables
from replay.structures import FIRST, LAST, MID, Nest

_CONVERTS = "; environments.copies.made_singly.Copies converts others."
PAPER_REPLAYS_PER_OBSERVATION = 0.8  # Kapturowski et al. 2019, "Extended results"


class AcmeActor(core.Actor):
    """A `RecurrentActor` of one environment behind Acme's interface.

    Args:
      actor: of one environment.
      see: an observation of the environment's -> as the agent sees it; by default the same.
      act: an action of the agent's -> as the environment takes it; by default the same.
      begin: called where an episode begins before the last one has ended.
    """

    def __init__(
        self,
        actor: RecurrentActor,
        see: Callable[[Any], Nest] = lambda observation: observation,
        act: Callable[[Any], Any] = lambda action: action,
        begin: Callable[[], None] = lambda: None,
    ) -> None:
        self._actor = actor
        self._see, self._act, self._begin = see, act, begin
        self._step_type = FIRST
        self._plays = False  # an episode that has not ended

    def select_action(self, observation: Any) -> Any:
        """The action of one step, as the spec has it; observation without a batch axis."""
        self._plays = True
        return np.asarray(self._act(self._chosen(observation)))[()]

    def observe_first(self, timestep: dm_env.TimeStep) -> None:
        """A new episode begins."""
        if self._plays:
            self._begin()
        self._step_type = FIRST
        self._plays = False

    def observe(self, action: Any, next_timestep: dm_env.TimeStep) -> None:
        """The outcome of the last action. An episode's last observation becomes its own row.

        Raises:
          NotFiniteError: when the reward is not; the writer has seen nothing of such a step.
        """
        discount = 1.0 if next_timestep.discount is None else next_timestep.discount
        self._observe(next_timestep.reward, float(discount > 0))
        self._step_type = MID
        if next_timestep.last():
            self._step_type = LAST
            self._chosen(next_timestep.observation)
            self._observe(0.0, 1.0)
            self._plays = False

    def update(self, wait: bool = False) -> None:
        """Fetches parameters, as `RecurrentActor.update`."""
        self._actor.update(wait)

    def _chosen(self, observation: Any) -> np.ndarray:
        batched = tree.map_structure(lambda x: np.asarray(x)[np.newaxis], self._see(observation))
        return self._actor.act(batched, np.array([self._step_type]), np.zeros(1, np.uint8))[0]

    def _observe(self, reward: float, continuation: float) -> None:
        rewards = np.array([reward], np.float32)
        check_rewards(rewards, ("The environment",))
        self._actor.observe(rewards, np.array([continuation], np.float32))


AnyAgent = TypeVar("AnyAgent", bound="SingleProcessAgent")


class SingleProcessAgent(AcmeActor, core.VariableSource):
    """Acts in one environment, or in N, and learns in between.

    For `acme.EnvironmentLoop` it is an actor of one environment; `learn` plays N of them. A learner
    step is due when a queue holds a batch, and of other tables as the rows written allow: `Pace`.

    Two agents of one seed do the same in environments that do the same, bit for bit, on processors
    of one kind with as many threads.

    Args:
      agent: what to run.
      environment_spec: of one environment, as `acme.make_environment_spec` gives it; the agent sees
        and acts as `environments.copies.conversion` has it.
      num_environments: N.
      seed: of parameters, policy and sampling.

    Raises:
      ValueError: the agent cannot play such an environment.

    Attributes:
      learner: the `acme.core.Learner` inside.
      actor_steps: of all environments together.
    """

    def __init__(
        self,
        agent: Agent,
        environment_spec: specs.EnvironmentSpec,
        *,
        num_environments: int = 1,
        seed: int = 0,
    ) -> None:
        if not flags.FLAGS.is_parsed():
            # acme.EnvironmentLoop.run asks Launchpad for a flag: an error outside absl's app.run.
            flags.FLAGS.mark_as_parsed()
        if num_environments < 1:
            raise ValueError(f"num_environments must be at least 1, got {num_environments}.")
        try:
            space, actions = map(space_of, environment_spec[:2])
            seen, acted = conversion.observed(space, actions), conversion.acted(actions)
            if has_mask(seen.space):
                masks().check(agent)
        except ValueError as error:
            raise ValueError(f"The environment cannot be played: {error}") from None
        self._spec = spec_of(seen.space, acted.space)
        # The actor is updated after learner steps only; then it should be up to date.
        self._agent = dataclasses.replace(agent, variable_update_period=1)
        tasks = np.zeros(num_environments, np.int64)
        self._process = InProcess(self._agent, self._spec, tasks=tasks, seed=seed)
        self.learner = self._process.learner
        super().__init__(self._process.actor, seen.convert, acted.convert, self._begin_stream)
        self._n = num_environments
        self._loop: tuple[VectorEnv, VectorEnvironmentLoop] | None = None
        is_queue = agent.tables[0].kind == "queue"
        self._pace = None if is_queue else pace_of(agent, num_environments)
        self._rows = self.actor_steps = 0
        self._learner_steps = 0  # those that the rows were for

    @property
    def name(self) -> str:
        """The agent's, as a run has it."""
        return self._agent.name

    @property
    def learner_update(self) -> Update:
        """The agent's update, whose `network` has the newest parameters."""
        return self._process.update

    @classmethod
    def of(cls: type[AnyAgent], environments: VectorEnv, *args: Any, **kwargs: Any) -> AnyAgent:
        """An agent for such environments, as many as these are; the rest as for the agent.

        Args:
          environments: as `learn` takes them.
        """
        spec = _spec_of(_vector(environments))
        return cls(spec, *args, num_environments=environments.num_envs, **kwargs)

    def observe(self, action: Any, next_timestep: dm_env.TimeStep) -> None:
        """The outcome of the last action."""
        super().observe(action, next_timestep)
        self.actor_steps += 1
        self._rows += 2 if next_timestep.last() else 1  # the last observation is a row too

    def update(self, wait: bool = False) -> None:
        """Makes the learner steps that are due, and then acts with the new parameters."""
        before = self._learner_steps
        while self._is_due():
            self.learner.step()
            self._learner_steps += 1
        if self._learner_steps == before:
            return
        # In the background it would be an update late, or not: a race.
        self._actor.update(wait=True)

    def learn(self, environments: VectorEnv, steps: int) -> list[Episode]:
        """Plays N environments for so many steps of all of them together, and learns meanwhile.

        The next call with the same environments goes on in the midst of their episodes.

        Args:
          environments: N of them, of the spec's spaces, that reset on the step after an episode's
            end: as `environments.suites.make` or `gymnasium.make_vec` makes them.
          steps: at least so many are made.

        Returns:
          The episodes that ended.

        Raises:
          ValueError: the environments are not such.
        """
        if self._loop is None or self._loop[0] is not environments:
            self._check(environments)
            if environments.num_envs != self._n:
                raise ValueError(
                    f"The agent plays {self._n} environments, got {environments.num_envs}: make it "
                    f"with num_environments={environments.num_envs}."
                )
            self._begin_stream()
            self._plays = True  # until an episode begins in Acme's loop
            act, observe = self._actor.act, self._actor.observe
            actor = types.SimpleNamespace(act=act, observe=observe, update=self._take_turn)
            self._loop = environments, _loop(environments, actor)
        finished: list[Episode] = []
        until = self.actor_steps + steps
        try:
            while self.actor_steps < until:
                made, ended = self._loop[1].step()
                self.actor_steps += made
                finished += ended
        except BaseException:  # a notebook's user interrupts, and goes on with new episodes
            self._loop = None
            raise
        return finished

    def evaluate(self, environments: VectorEnv, episodes: int, *, seed: int = 0) -> list[Episode]:
        """Plays episodes as the agent is evaluated, each environment its share; learns nothing.

        Args:
          environments: as for `learn`, any number of them, and others than those.
          episodes: how many.
          seed: of the policy.

        Raises:
          ValueError: as `learn`, if it learns in these, and for fewer episodes than none.
        """
        if episodes < 0:
            raise ValueError(f"episodes must be at least 0, got {episodes}.")
        self._check(environments)
        if self._loop is not None and self._loop[0] is environments:
            raise ValueError("The agent learns in these environments: evaluate it in others.")
        network, n = self._process.update.network, environments.num_envs
        evaluator = make_evaluator(self._agent, network, num_environments=n, seed=seed)
        loop = _loop(environments, evaluator)
        return [episode for _, ended in loop.play_in_all(episodes) for episode in ended]

    def evaluator(self, *, seed: int = 0) -> core.Actor:
        """An actor of one environment, for `acme.EnvironmentLoop`, that acts as in `evaluate`."""
        network = self._process.update.network
        actor = make_evaluator(self._agent, network, num_environments=1, seed=seed)
        return AcmeActor(actor, self._see, self._act, actor.break_off)

    def save(self, prefix: str | pathlib.Path, *, replay: bool = False) -> None:
        """Writes all that learning depends on to files that begin so.

        They are the files of a run's learner, `checkpoints/learner-<agent>/<update>.*`: either can
        be read in the other's place.

        Args:
          prefix: of the files; folders on the way are made.
          replay: whether the replay is written too, `<prefix>.replay.npz`.

        Raises:
          NotFiniteError, BrokenOffError: of an update; nothing is written.
        """
        self.learner.write_checkpoint(os.fspath(prefix))
        if replay:
            self._process.replay.save(
                _replay_file(prefix), rows=self._rows, learner_steps=self._learner_steps
            )

    def load(self, prefix: str | pathlib.Path, *, replay: bool = False) -> None:
        """Acts and learns on from what `save` wrote.

        Without a replay the agent goes on with its own, which a new agent has to fill first.

        Raises:
          OSError: when the files are missing; nothing is loaded then.
          ValueError: when they are corrupt, or of another agent or config.
        """
        for file in (pathlib.Path(f"{os.fspath(prefix)}.index"), _replay_file(prefix)):
            if not file.is_file() and (replay or file.suffix == ".index"):
                raise FileNotFoundError(errno.ENOENT, "There is no such file of `save`", str(file))
        if replay:
            saved: Mapping[str, np.ndarray] = self._process.replay.load(_replay_file(prefix))
            self._rows, self._learner_steps = int(saved["rows"]), int(saved["learner_steps"])
        try:
            self.learner.read_checkpoint(os.fspath(prefix))
        except (tf.errors.OpError, ValueError, AssertionError) as error:
            raise ValueError(
                f"{prefix} cannot be read by this agent: it is damaged, or of another agent or "
                f"config. Part of it may be loaded, so make the agent anew. {error}"
            ) from None

    def metrics(self) -> dict[str, float]:
        """The newest update's scalars, such as `loss`; empty before the first."""
        scalars = {name: np.asarray(value) for name, value in self._process.metrics.items()}
        return {name: float(value) for name, value in scalars.items() if value.ndim == 0}

    def get_variables(self, names: Sequence[str]) -> list[list[np.ndarray]]:
        """The learner's, as `Learner.get_variables`."""
        return self.learner.get_variables(names)

    def _is_due(self) -> bool:
        if self._pace is None:
            return self._process.replay.has_batch()
        # Rows of episodes that were broken off made no items.
        is_due = self._learner_steps < self._pace.learner_steps(self._rows)
        return is_due and self._process.replay.has_batch()

    def _begin_stream(self) -> None:
        """Begins a stream; episodes that `learn` is amid do not go on."""
        self._loop = None
        self._process.begin()

    def _take_turn(self) -> None:
        self._rows += self._n
        self.update()

    def _check(self, environments: VectorEnv) -> None:
        """Accepts environments that can be played, however many."""
        mode = _vector(environments).metadata.get("autoreset_mode")
        if mode != AutoresetMode.NEXT_STEP:
            raise ValueError(f"autoreset_mode must be {AutoresetMode.NEXT_STEP}, got {mode}.")
        if (found := _spec_of(environments)) != self._spec:
            raise ValueError(
                f"The environments must have the agent's spec, {_told(self._spec)}, got "
                f"{_told(found)}{_CONVERTS}"
            )


def _loop(environments: VectorEnv, actor: Any) -> VectorEnvironmentLoop:
    names = [type(environments).__name__] * environments.num_envs
    return VectorEnvironmentLoop(environments, actor, names)


def _vector(environments: Any) -> VectorEnv:
    if not isinstance(environments, VectorEnv):
        raise ValueError(
            "environments must be a gymnasium.vector.VectorEnv, such as environments.suites.make "
            f"gives, got {environments!r}."
        )
    return environments


def _told(spec: specs.EnvironmentSpec) -> str:
    """What is seen and done, in short; two specs that differ by their bounds show those."""

    def leaf(array: specs.Array) -> str:
        bounds = [getattr(array, end, np.zeros(0)) for end in ("minimum", "maximum")]
        lie = f" from {np.min(bounds[0])} to {np.max(bounds[1])}" if bounds[0].size else ""
        return f"{array.dtype} {[*array.shape]}{lie}"

    seen = tree.map_structure(leaf, spec.observations)
    return f"observations {seen} and actions {leaf(spec.actions)}"


def _spec_of(environments: VectorEnv) -> specs.EnvironmentSpec:
    try:
        return spec_of(environments.single_observation_space, environments.single_action_space)
    except ValueError as error:
        raise ValueError(f"The environments {error}{_CONVERTS}") from None


def _replay_file(prefix: str | pathlib.Path) -> pathlib.Path:
    return pathlib.Path(f"{prefix}.replay.npz")


@dataclasses.dataclass(frozen=True)
class Pace:
    """The rows of a stream at which a learner in its actor's thread makes its steps.

    Attributes:
      first: rows of the stream before the first step.
      period: rows from one step to the next; several steps may fall on one row.
    """

    first: int
    period: float

    def learner_steps(self, rows: int) -> int:
        """Steps that `rows` rows allow."""
        return int((rows - self.first) / self.period) + 1 if rows >= self.first else 0


def pace_of(agent: Agent, num_environments: int = 1) -> Pace:
    """The pace of an agent's learner: `samples_per_insert` of its first table, which is no queue.

    Where the table has none, it is the replays per observation that the R2D2 paper reports.
    """
    table = agent.tables[0]
    layout, block = table.layout, tables.block_layout([table]).length
    if table.samples_per_insert is not None:
        rows_per_sample = layout.period / table.samples_per_insert
    else:
        rows_per_sample = layout.length / PAPER_REPLAYS_PER_OBSERVATION
    # Enough to fill a table to its least size, and one item at least: whole blocks, and a row.
    of_first = (-(-layout.length // block) * block + 1) * num_environments
    return Pace(
        max(table.min_size * layout.period, of_first), agent.batch_sizes[0] * rows_per_sample
    )
