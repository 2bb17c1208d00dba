"""Populations' folders with made-up members and decisions, whose page must show them."""

import dataclasses
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from population import settings
from population.decisions import Decision
from population.folder import PopulationFolder, name_of
from population.settings import Population
from tests.analysis.report.made_up import Folder
from tests.population.populations import decision_of

RATE, COST = "learning_rate", "entropy_cost"
SWEEP = {RATE: "log:1e-5:1e-2", COST: "uniform:0.1:0.9"}


class Made:
    """A population's folder, at first with nothing but its population.json.

    `told` is what launch.train is told, by flag; `given` the other settings.
    """

    def __init__(
        self,
        path: pathlib.Path,
        members: int = 3,
        sweep: Mapping[str, str] = SWEEP,
        env: str = "catch",
        told: Mapping[str, Any] | None = None,
        **given: Any,
    ) -> None:
        self.folder = PopulationFolder(path)
        self.settings = Population(
            agent="impala",
            env=env,
            seed=0,
            sweep=dict(sweep),
            flags=dict(told or {}),
            overrides={},
            members=members,
            **given,
        )
        settings.make_folder(self.folder)
        settings.record(self.folder, self.settings)
        self.folder.decisions.mkdir()
        self._made: dict[int, list[Decision]] = {member: [] for member in range(members)}
        self._time = 1_700_000_000.0

    def begin(self, values: Mapping[str, Sequence[Any]]) -> None:
        """Every member's first decision; the values are by field, and of each member in order."""
        for member in self._made:
            self._write(member, {}, {name: of_each[member] for name, of_each in values.items()})

    def decide(
        self,
        member: int,
        actor_steps: int,
        rival: int,
        *,
        adopts: bool = False,
        at: int | None = None,
        scores: tuple[float | None, float | None] = (None, None),
        values: Mapping[str, Any] | None = None,
    ) -> None:
        """A decision: `at` is the update of the rival's learner that is taken, `scores` are the
        member's own and the rival's, and `values` those that change.
        """
        old, other = self._made[member][-1].new, self._made[rival][-1]
        self._write(
            member,
            old,
            (other.new if adopts else old) | dict(values or {}),
            actor_steps=actor_steps,
            score=scores[0],
            rival=rival,
            rival_score=scores[1],
            adopted=other.number if adopts else None,
            rival_learner_step=at,
            ancestor=(other if adopts else self._made[member][-1]).ancestor,
        )

    def play(self, member: int, returns: Sequence[float]) -> Folder:
        """The run folder of a member with an episode of 1,000 actor steps for each return."""
        made = Folder(self.folder.member(member).path, "impala", self.settings.env)
        if returns:
            made.act(returns)
        return made

    def path(self, member: int, number: int) -> pathlib.Path:
        """The file of a decision."""
        return self.folder.decisions / f"{name_of(member)}-{number:04}.json"

    def _write(
        self, member: int, old: Mapping[str, Any], new: Mapping[str, Any], **given: Any
    ) -> None:
        self._time += 1
        at_first: dict[str, Any] = dict(actor_steps=0, episodes=0, learner_step=0, rival=None)
        at_first |= dict(time=self._time, old=dict(old), new=dict(new))
        decision = decision_of(member, len(self._made[member]), **(at_first | given))
        self._made[member].append(decision)
        text = json.dumps(dataclasses.asdict(decision))
        self.path(member, decision.number).write_text(text)


def evolved(path: pathlib.Path) -> Made:
    """Three members: 1 takes over 0's, then 2 takes over 1's, which are 0's; 2 is the best.

    Each plays 40 episodes of 1,000 steps. Two updates are made in that time.
    """
    made = Made(path)
    made.begin({RATE: [1e-4, 1e-3, 1e-2], COST: [0.2, 0.4, 0.8]})
    made.decide(1, 10_000, rival=0, adopts=True, at=24, scores=(-0.5, 0.5), values={COST: 0.25})
    made.decide(0, 15_000, rival=2, scores=(0.5, -1.0), values={RATE: 1.2e-4})
    made.decide(2, 20_000, rival=1, adopts=True, at=30, scores=(-0.5, 0.25))
    for member, last in enumerate((0.25, 0.5, 0.75)):
        made.play(member, [-1.0] * 20 + [last] * 20)
    return made
