"""Steps -> overlapping sequences in Reverb.

One environment's stream, with K = 4 rows per block, and an R2D2 table of burn-in 2, length 4,
period 4 (really 20; 40, 80, 40). F is an episode's FIRST row and L its LAST one:

    row       0 1 2 3   4 5 6 7   8 9 . .
              F . . .   . . L F   . .
    block 0  |0 1 2 3|4                     a block also holds the observation of the row after it
    block 1          |4 5 6 7|8
    item 1  xx[0 1 2 3]4            x: padding, the part of the burn-in that does not exist
    item 2       2 3[4 5]6          ends with the episode: row 6 is only observed, and the dataset
                                    pads the two trained rows that are missing
    item 3                xx[7 8 . .].      the next episode begins with row 7

A V-trace table (`crosses_episodes`) cuts the same rows into [0 1 2 3]4, [4 5 6 7]8, ... whatever
they are. An item of either kind refers to whole blocks, from the one with its first context row
(older frames, the previous action and reward) to the one with its last step, and its header says
which rows are its own. Reverb stores a block once, however many items of however many tables refer
to it.

Each `append` writes one row of all N environments into `[N, K + 1, ...]` buffers: no Python runs
per environment and step. When the row after a block is known the block leaves, one cell per
environment and column, and so do the items that it completes, with the core state held before their
first row.
"""

import collections
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import reverb
import tree

from replay.blocks import BlockBuffer
from replay.cells import CellWriter, WriterStopped
from replay.sequences import Cuts, Cutter, Facts, History, oldest_learner_step, priority_input
from replay.structures import (
    FIRST,
    LAST,
    UNKNOWN,
    Block,
    Header,
    Nest,
    PriorityInput,
    Step,
    TableSpec,
)
from replay.tables import max_blocks

InitialPriority = Callable[[PriorityInput], np.ndarray]

__all__ = ["InitialPriority", "SequenceWriter", "WriterStopped"]


class SequenceWriter:
    """Writes the stream of N environments to one replay server, for all of its tables at once.

    One Reverb writer serves all environments: only items of one writer share their chunks. A full
    table therefore stops all of them, and every other table.
    """

    def __init__(
        self,
        client: reverb.Client,
        tables: Sequence[TableSpec],
        *,
        block_length: int,
        actors: np.ndarray,
        tasks: np.ndarray,
        agent: int,
        initial_priorities: Mapping[str, InitialPriority] | None = None,
        foreign_core_states: Mapping[str, Nest] | None = None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Makes a writer; the first step decides the observation's shape and type.

        Args:
          client: of the replay server.
          tables: every table that wants this stream.
          block_length: K, rows per block; divides every table's period.
          actors: `[N]`, the environments' indices among all actors of the program.
          tasks: `[N]`, the environments' tasks.
          agent: index of the acting agent in the program.
          initial_priorities: by table name, how its items get their first priority; 1 where it is
            missing.
          foreign_core_states: by table name, the initial core state (one environment's) of a reader
            whose network is not the one that acts. Other tables' items hold the acting network's
            state.
          should_stop: asked twice a second while a rate limiter blocks.

        Raises:
          ValueError: if there is no table, `block_length` does not divide a period, or `actors` and
            `tasks` are not two vectors of the same N.
        """
        _check(tables, block_length, actors, tasks)
        self._tables = tables
        self._block_length = block_length
        self._actors, self._tasks, self._agent = actors, tasks, agent
        self._initial_priorities = dict(initial_priorities or {})
        self._foreign_core_states = dict(foreign_core_states or {})

        self._row = 0
        self._expected_first = np.ones(len(actors), bool)
        self._ended: list[tuple[int, int]] = []  # (environment, LAST row), since the last block
        self._buffer = BlockBuffer(block_length)
        self._cutters = [Cutter(spec.layout, len(actors)) for spec in tables]
        self._facts = History(_history_size(tables, block_length))
        self._core_states = History(_history_size(tables, block_length))

        # An item may be found complete only one block after its end.
        reach = 1 + max(max_blocks(spec.layout, block_length) for spec in tables)
        self._cells = [collections.deque[Block](maxlen=reach) for _ in actors]
        self._keep_alive = reach * len(actors)
        self._writer = CellWriter(client, self._keep_alive, should_stop)

    def append(
        self,
        step: Step,
        *,
        core_state: Nest,
        values: Mapping[str, np.ndarray],
        learner_step: int,
    ) -> None:
        """Takes one row of every environment.

        The items that this row completes are on their way when it returns, and those before them
        are in their tables: this is where a rate limiter blocks.

        Args:
          step: `[N, ...]`; on `LAST` rows the action and what follows it mean nothing.
          core_state: `[N, ...]`, the acting network's state before this row, resets applied.
          values: `[N]` each, what the tables' first priorities are made from.
          learner_step: of the parameters that acted.

        Raises:
          ValueError: if a field is not of N environments, or `FIRST` rows are not exactly row 0 and
            those after a `LAST` row.
          WriterStopped: if `should_stop` said so while a rate limiter blocked.
        """
        self._check_rows(step, core_state, values)
        self._remember(step, core_state, values, learner_step)
        slot = self._row % self._block_length
        block_is_full = slot == 0 and self._row > 0
        if block_is_full:
            self._buffer.write(self._block_length, step)
            self._append_blocks()
        self._buffer.write(slot, step)
        if block_is_full:
            self._create_items()
        self._row += 1

    def flush(self) -> None:
        """Waits until every item created so far is in its table.

        Raises:
          WriterStopped: if `should_stop` said so while a rate limiter blocked.
        """
        self._writer.wait(0)

    def close(self) -> None:
        """Ends the stream. Rows of unfinished items, and items not yet in their table, are lost."""
        self._writer.close()

    def _remember(
        self, step: Step, core_state: Nest, values: Mapping[str, np.ndarray], learner_step: int
    ) -> None:
        facts = Facts(
            step_type=step.step_type,
            lives=step.lives,
            reward=step.reward,
            continuation=step.continuation,
            learner_step=np.full(len(self._actors), learner_step, np.int64),
            values=dict(values),
        )
        self._facts.write(self._row, facts)
        self._core_states.write(self._row, core_state)
        ended = step.step_type == LAST
        self._ended += [(n, self._row) for n in np.flatnonzero(ended)]
        self._expected_first = ended

    def _append_blocks(self) -> None:
        for cells, block in zip(self._cells, self._buffer.blocks(), strict=True):
            cells.append(self._writer.append({"blocks": block}, self._keep_alive)["blocks"])

    def _create_items(self) -> None:
        environments, rows = np.asarray(sorted(self._ended), np.int64).reshape(-1, 2).T
        self._ended = []
        created = 0
        for spec, cutter in zip(self._tables, self._cutters, strict=True):
            cuts = cutter.cut(self._row, environments, rows)
            if len(cuts.environment):
                self._create_items_of(spec, cuts)
                created += len(cuts.environment)
        if created:
            self._writer.wait(created)  # these may still be on their way while the actor goes on

    def _create_items_of(self, spec: TableSpec, cuts: Cuts) -> None:
        priorities = self._priorities(spec, cuts)
        first_blocks = cuts.context // self._block_length
        last_blocks = (cuts.end - 1) // self._block_length
        headers = self._headers(spec, cuts, first_blocks)
        states = self._core_states.read(cuts.start, cuts.environment)  # [M, ...]
        oldest = self._row // self._block_length - len(self._cells[0])
        for m, n in enumerate(cuts.environment):
            state = tree.map_structure(lambda leaf, m=m: leaf[m], states)
            state = {spec.name: self._foreign_core_states.get(spec.name, state)}
            own = self._writer.append({"header": headers[m], "core_state": state}, keep_alive=1)
            self._writer.create_item(
                spec.name,
                float(priorities[m]),
                blocks=list(self._cells[n])[first_blocks[m] - oldest : last_blocks[m] - oldest + 1],
                header=own["header"],
                core_state=own["core_state"][spec.name],
            )

    def _headers(self, spec: TableSpec, cuts: Cuts, first_blocks: np.ndarray) -> np.ndarray:
        foreign = spec.name in self._foreign_core_states
        learner_step = oldest_learner_step(cuts, self._facts)
        header = Header(
            start=cuts.start - first_blocks * self._block_length,
            padding=cuts.padding(spec.layout.burn_in),
            num_rows=cuts.end - cuts.start,
            learner_step=np.full_like(learner_step, UNKNOWN) if foreign else learner_step,
            task=self._tasks[cuts.environment],
            actor=self._actors[cuts.environment],
            agent=np.full_like(cuts.start, self._agent),
        )
        return np.stack(header, axis=-1).astype(np.int64)  # [M, 7]

    def _priorities(self, spec: TableSpec, cuts: Cuts) -> np.ndarray:
        if spec.name not in self._initial_priorities:
            return np.ones(cuts.start.shape)
        inputs = priority_input(cuts, spec.layout.length, self._facts)
        priorities = np.asarray(self._initial_priorities[spec.name](inputs))
        if priorities.shape != cuts.start.shape:
            raise ValueError(
                f"Table {spec.name!r}: initial priorities must have shape {cuts.start.shape}, "
                f"got {priorities.shape}."
            )
        if not (np.isfinite(priorities) & (priorities >= 0)).all():
            raise ValueError(
                f"Table {spec.name!r}: initial priorities must be finite and not negative, "
                f"got {priorities}."
            )
        return priorities

    def _check_rows(self, step: Step, core_state: Nest, values: Mapping[str, np.ndarray]) -> None:
        num_environments = len(self._actors)
        for path, leaf in tree.flatten_with_path((step, core_state, dict(values))):
            if len(leaf) != num_environments:
                raise ValueError(
                    f"Every field must have {num_environments} rows, one per environment; "
                    f"{path[1:]} has {len(leaf)}."
                )
        first = step.step_type == FIRST
        if (first != self._expected_first).any():
            wrong = np.flatnonzero(first != self._expected_first).tolist()
            raise ValueError(
                f"A row is FIRST if and only if it is row 0 or follows a LAST one; at row "
                f"{self._row} environments {wrong} have step types "
                f"{step.step_type[wrong].tolist()}."
            )


def _history_size(tables: Sequence[TableSpec], block_length: int) -> int:
    """Rows that an item may reach back to when it is found complete, and the one before them."""
    reach = (spec.layout.context + spec.layout.burn_in + spec.layout.length for spec in tables)
    return max(reach) + block_length + 1


def _check(
    tables: Sequence[TableSpec], block_length: int, actors: np.ndarray, tasks: np.ndarray
) -> None:
    if not tables:
        raise ValueError("A writer needs at least one table, got none.")
    if block_length < 1:
        raise ValueError(f"block_length must be at least 1, got {block_length}.")
    for spec in tables:
        if spec.layout.period % block_length:
            raise ValueError(
                f"block_length ({block_length}) must divide the period of table {spec.name!r}, "
                f"which is {spec.layout.period}."
            )
    if actors.ndim != 1 or len(actors) < 1 or actors.shape != tasks.shape:
        raise ValueError(
            f"actors and tasks must be two vectors of the same N >= 1, got shapes "
            f"{actors.shape} and {tasks.shape}."
        )
