"""Turns that no process plays: they count, learn, log and save as a run does, within this one."""

import dataclasses
import json
import os
import signal
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from launch.members.loop import Loop
from population.folder import PopulationFolder
from run_folder import checkpoints
from tests.population.learners import Learning
from tests.population.populations import log_episodes

LIMIT = 200  # actor steps of each member, unless another is said
STEPS, EPISODES = 20, 2  # of a turn, each time it is asked whether it has ended
_MOST_POLLS = 10_000  # of all turns of a test

Make = Callable[..., Loop]  # of the fixture `make`


@dataclasses.dataclass
class World:
    """The behaviour of a test's turns, and a record of them.

    Attributes:
      returns: of each member's episodes.
      codes: by which a member's next turns end; 0 after those.
      lasting: turns that go on until they are sent a signal, by member.
      refusing_to_end: whether turns go on when they are asked to end by a file.
      meanwhile: called each time that a turn is asked whether it has ended, with its member.
      said: the last words of turns.
      started: each turn's member, in the order in which they began.
      told: what each turn was told: flags by name.
      playing: turns that have not ended.
      most: that were playing at a time.
      asked: how often a turn was asked to end by a file, by member.
      signalled: how often by a signal.
    """

    returns: dict[int, float] = dataclasses.field(default_factory=dict)
    codes: dict[int, list[int]] = dataclasses.field(default_factory=dict)
    lasting: set[int] = dataclasses.field(default_factory=set)
    refusing_to_end: bool = False
    meanwhile: Callable[[int], None] = lambda member: None
    said: str = "It broke."
    started: list[int] = dataclasses.field(default_factory=list)
    told: list[dict[str, str]] = dataclasses.field(default_factory=list)
    playing: set[int] = dataclasses.field(default_factory=set)
    most: int = 0
    asked: dict[int, int] = dataclasses.field(default_factory=lambda: defaultdict(int))
    signalled: dict[int, int] = dataclasses.field(default_factory=lambda: defaultdict(int))
    polls: int = 0

    def told_to(self, member: int, name: str) -> list[str | None]:
        """The value of a flag in each of a member's turns; None where it was not given."""
        pairs = zip(self.started, self.told, strict=True)
        return [told.get(name) for each, told in pairs if each == member]

    def turn(self, folder: PopulationFolder, member: int, arguments: list[str]) -> "Turn":
        """Begins one, in place of `launch.members.loop.Turn`."""
        assert member not in self.playing
        pairs = (argument.removeprefix("--").partition("=") for argument in arguments)
        told = {name: value for name, _, value in pairs}
        assert told["run_dir"] == str(folder.member(member).path)
        assert ("resume" in told) is folder.member(member).config.exists()
        self.started.append(member)
        self.told.append(told)
        self.playing.add(member)
        self.most = max(self.most, len(self.playing))
        return Turn(self, folder, member, told)


class Turn:
    """One turn: as many steps each time that it is asked whether it has ended."""

    def __init__(
        self, world: World, folder: PopulationFolder, member: int, told: dict[str, str]
    ) -> None:
        self._world = world
        self._member = member
        self._run = folder.member(member)
        self._run.nodes.mkdir(parents=True, exist_ok=True)
        self._run.config.write_text("{}")
        self._limit = int(told["max_actor_steps"])
        last = self._run.checkpoints / "manifest.json"
        counts = json.loads(last.read_text()) if last.exists() else {}
        self._begun = counts.get("actor_steps", 0)
        self._counts = {name: counts.get(name, 0) for name in ("actor_steps", "episodes")}
        self._is_over = False
        codes = world.codes.get(member, [])
        self._code = codes.pop(0) if codes else 0

    def ended(self) -> int | None:
        """Plays on, or saves and ends."""
        world = self._world
        world.polls += 1
        assert world.polls < _MOST_POLLS, "The turns do not end."
        world.meanwhile(self._member)
        if self._code:
            world.playing.remove(self._member)
            return self._code
        reached = self._counts["actor_steps"] >= self._limit
        if self._is_over or (reached and self._member not in world.lasting):
            self._save()
            world.playing.remove(self._member)
            return 0
        self._counts["actor_steps"] += STEPS
        self._counts["episodes"] += EPISODES
        return None

    def stop(self) -> None:
        """Asks for the end by a file."""
        self._world.asked[self._member] += 1
        self._is_over = self._is_over or not self._world.refusing_to_end

    def signal(self) -> None:
        """Asks for the end by a signal."""
        self._world.signalled[self._member] += 1
        self._is_over = True

    def progress(self) -> dict[str, Any] | None:
        """Counts and returns; nothing before the first steps."""
        if self._counts["actor_steps"] == self._begun:
            return None
        returns = {"catch": self._world.returns.get(self._member, 0.0)}
        return dict(counts=dict(self._counts), returns=returns, aggregates={})

    def said(self) -> str:
        """Its last words."""
        return self._world.said

    def _save(self) -> None:
        """As a run ends: the last episodes are logged after the learner heard of the counts."""
        steps = self._counts["actor_steps"] - self._begun
        learning = Learning(self._run, float(self._member + 1), goes_on=bool(self._begun))
        learning.learn(steps // 10)
        learning.save()
        logged = self._counts["actor_steps"] + STEPS // 2
        value = self._world.returns.get(self._member, 0.0)
        log_episodes(self._run, [(logged, "catch", value)] * (steps // 10))


def steps_of(folder: PopulationFolder, member: int) -> int:
    """Actor steps that a member has saved."""
    manifest = checkpoints.read(folder.member(member).checkpoints)
    return manifest.actor_steps if manifest else 0


def interrupt() -> None:
    """As Ctrl-C does."""
    os.kill(os.getpid(), signal.SIGINT)
