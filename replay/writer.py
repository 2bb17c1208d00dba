"""Steps -> overlapping sequences in Reverb.

One environment's stream, with blocks of K = 4 rows which repeat the C = 1 before them, and an R2D2
table of burn-in 4, length 8, period 4 (really 40, 80, 40). F is an episode's FIRST row and L its
LAST one:

    row       0 1 2 3   4 5 6 7   8 9 . .  12 . L   F . . .  19
              F . . .   . . . .   . . . .   . . L   F . . .
    block 0 .|0 1 2 3|4                     a block also holds the row after it
    block 1        3|4 5 6 7|8
    block 2                7|8 9 . .|12
    block 3                       11|12 . L|       the episode's end ends a block
    block 4                                .|15 . . .|19
    item 1  xxxx[0 ...... 7]8       x: padding, the part of the burn-in that does not exist
    item 2       0 1 2 3[4 ....... 11]12
    item 3                 4 5 6 7[8 ....... 13]14   only observed; the dataset pads the rest

Where a table of V-trace's (`crosses_episodes`) reads the stream too, every block has K rows, and
its items are [0 1 2 3]4, [4 5 6 7]8, ... whatever they are. An item of either kind refers to whole
blocks, from the one with its first step to the one with its last, and its header says which rows
are its own. The rows before its first one, which give it frames, action and reward, are in its
first block. Reverb stores a block once, however many items of however many tables refer to it.

Each `append` writes one row of all N environments at once: no Python runs per environment and step.
When the row after a block is known the block leaves, one cell per column, and so do the items that
it completes, with the core state held before their first row.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import reverb
import tree
from reverb import errors
from reverb.trajectory_writer import TrajectoryColumn

from replay.blocks import BlockBuffer, compressed
from replay.layout import BlockLayout
from replay.sequences import Cuts, Cutter, Facts, History, priority_input
from replay.structures import FIRST, LAST, UNKNOWN, Header, Nest, PriorityInput, Step, TableSpec
from replay.tables import max_blocks

Cell = Any  # Reverb's weak reference to one
InitialPriority = Callable[[PriorityInput], np.ndarray]

_SLICE_MILLISECONDS = 500  # how long a stop may go unnoticed while a rate limiter blocks


class WriterStopped(Exception):
    """The program asked to stop while a table did not accept more items."""


class _SentBlock(NamedTuple):
    """A block that has left."""

    start: int  # its first own row, counted in the stream
    stop: int  # the row after its last own one
    cells: list[Cell]  # Reverb's, one for each of its leaves


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
        blocks: BlockLayout,
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
          blocks: how the stream is cut into blocks, by `block_layout` of these tables.
          actors: `[N]`, the environments' indices among all actors of the program.
          tasks: `[N]`, the environments' tasks.
          agent: index of the acting agent in the program.
          initial_priorities: by table name, how its items get their first priority; 1 where it is
            missing.
          foreign_core_states: by table name, the initial core state (one environment's) of a reader
            with another network than the acting one. Other tables' items hold the acting network's
            state.
          should_stop: asked twice a second while a rate limiter blocks.
        """
        self._tables = tables
        self._length = blocks.length
        self._actors, self._tasks, self._agent = actors, tasks, agent
        self._initial_priorities = dict(initial_priorities or {})
        self._foreign_core_states = dict(foreign_core_states or {})

        self._row = 0
        self._expected_first = np.ones(len(actors), bool)
        self._ended: list[list[int]] = [[] for _ in actors]  # LAST rows since each one's last block
        self._buffer = BlockBuffer(blocks, len(actors))
        self._cutters = [Cutter(spec.layout, len(actors)) for spec in tables]
        self._facts = History(_history_size(tables, blocks.length))
        self._core_states = History(_history_size(tables, blocks.length))

        most = max(max_blocks(spec.layout, blocks.length) for spec in tables)
        self._sent = [collections.deque[_SentBlock](maxlen=most) for _ in actors]
        # While one environment completes so many blocks others may complete twice as many.
        self._keep_alive = (2 * most + 1) * len(actors)
        self._writer = client.trajectory_writer(self._keep_alive)
        self._columns: dict[str, Any] = {}  # Reverb's histories of them
        self._should_stop = should_stop

    def append(
        self, step: Step, *, core_state: Nest, values: Mapping[str, np.ndarray], learner_step: int
    ) -> None:
        """Takes one row of every environment.

        The items that this row completes are on their way when it returns, and those before them
        are in their tables: this is where a rate limiter blocks.

        Args:
          step: `[N, ...]`; on `LAST` rows the action and its outcome mean nothing.
          core_state: `[N, ...]`, the acting network's state before this row, resets applied.
          values: `[N]` each, from which the tables' first priorities are computed.
          learner_step: of the parameters that acted.

        Raises:
          ValueError: if a field is not of N environments, or `FIRST` rows are not exactly row 0 and
            those after a `LAST` row.
          WriterStopped: if `should_stop` said so while a rate limiter blocked.
        """
        self._check_rows(step, core_state, values)
        self._remember(step, core_state, values, learner_step)
        complete = self._buffer.write(step).tolist()
        for n in complete:
            start, block = self._buffer.block(n)
            columns = tree.flatten(compressed(block))
            sent = self._append({"blocks": columns}, self._keep_alive)["blocks"]
            self._sent[n].append(_SentBlock(start, min(start + self._length, self._row + 1), sent))
        if complete:
            self._create_items(complete)
        self._row += 1

    def flush(self) -> None:
        """Waits until every item created so far is in its table.

        Raises:
          WriterStopped: if `should_stop` said so while a rate limiter blocked.
        """
        self._wait(0)

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
        for n in np.flatnonzero(ended):
            self._ended[n].append(self._row)
        self._expected_first = ended

    def _create_items(self, environments: Sequence[int]) -> None:
        ended = [self._ended[n] for n in environments]
        created = 0
        for spec, cutter in zip(self._tables, self._cutters, strict=True):
            cuts = cutter.cut(self._row, environments, ended)
            if len(cuts.environment):
                self._create_items_of(spec, cuts)
                created += len(cuts.environment)
        for n in environments:
            self._ended[n] = []
        if created:
            self._wait(created)  # these may still be on their way while the actor goes on

    def _create_items_of(self, spec: TableSpec, cuts: Cuts) -> None:
        priorities = self._priorities(spec, cuts)
        states = tree.flatten(self._core_states.read(cuts.start, cuts.environment))  # [M, ...] each
        foreign = self._foreign_core_states.get(spec.name)
        name = f"core_state/{spec.name}"
        blocks = [
            [sent for sent in self._sent[n] if sent.start < end and start < sent.stop]
            for n, start, end in zip(cuts.environment, cuts.start, cuts.end, strict=True)
        ]
        headers = self._headers(spec, cuts, np.asarray([first.start for first, *_ in blocks]))
        for m, sent in enumerate(blocks):
            state = [x[m] for x in states] if foreign is None else tree.flatten(foreign)
            own = self._append({"header": [headers[m]], name: state}, keep_alive=1)
            cells = zip(*[block.cells for block in sent], strict=True)
            columns = [TrajectoryColumn(column) for column in cells]
            for cell in (*own["header"], *own[name]):
                columns.append(TrajectoryColumn([cell], squeeze=True))
            self._writer.create_item(spec.name, float(priorities[m]), columns)

    def _append(
        self, cells: Mapping[str, Sequence[np.ndarray]], keep_alive: int
    ) -> dict[str, list[Cell]]:
        """Appends one cell to each of some columns, and returns references to the cells.

        Every cell is a chunk of its own, compressed as soon as it is appended. Items may refer to
        it until `keep_alive` newer ones stand in its column.

        Args:
          cells: of columns that go together, by the name of all of them.
          keep_alive: how many of a column items may refer to.
        """
        data = {f"{name}/{i}": x for name, leaves in cells.items() for i, x in enumerate(leaves)}
        new = data.keys() - self._columns.keys()
        for column in new:
            self._writer.configure((column,), num_keep_alive_refs=keep_alive, max_chunk_length=1)
        self._writer.append(data)
        if new:
            self._columns = self._writer.history
        newest = iter([next(iter(self._columns[column][-1])) for column in data])
        return {name: [next(newest) for _ in leaves] for name, leaves in cells.items()}

    def _wait(self, pending: int) -> None:
        """Blocks until at most `pending` items are not yet in their table."""
        while True:
            try:
                return self._writer.flush(pending, timeout_ms=_SLICE_MILLISECONDS)
            except errors.DeadlineExceededError as error:
                if self._should_stop():
                    message = "Stopped while a table did not accept more items."
                    raise WriterStopped(message) from error

    def _headers(self, spec: TableSpec, cuts: Cuts, first_rows: np.ndarray) -> np.ndarray:
        foreign = spec.name in self._foreign_core_states
        # Parameters only get newer: the oldest that acted are the first row's.
        learner_step = self._facts.read(cuts.start, cuts.environment).learner_step
        header = Header(
            start=cuts.start - first_rows,
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
        row = (step, core_state, dict(values))
        if any(len(leaf) != num_environments for leaf in tree.flatten(row)):
            found = {path[1:]: len(leaf) for path, leaf in tree.flatten_with_path(row)}
            path = next(path for path, length in found.items() if length != num_environments)
            raise ValueError(
                f"Every field must have {num_environments} rows, one per environment; "
                f"{path} has {found[path]}."
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
    reach = max(spec.layout.burn_in + spec.layout.length for spec in tables)
    return reach + block_length + 1
