"""The stored and the learned-from data: named fields, each with its shape.

One environment's stream is a row per vector step, for ever: the autoreset happens on the next step,
so the row after an episode's last step holds only that episode's last observation (`LAST`), and
nothing is learned from it.

    row         0      1    2    3      4      5    ...
    step_type   FIRST  MID  MID  LAST   FIRST  MID
    observation o0     o1   o2   o3     o0'    o1'
    action      a0     a1   a2   -      a0'    a1'     taken on the row's observation
    reward      r0     r1   r2   -      r0'    r1'     that followed the action
    continuation 1     1    0    -      1      1       0 at a termination; truncation keeps 1

N environments advance together, so each row of all of them fills a buffer with plain numpy, and
each environment's K consecutive rows leave for Reverb as one `Block`, a compressed chunk for each
of its columns. It is shared by every item, in every table, that covers any of its rows. An
`Item` is a few consecutive blocks and a `Header` that says where in them it lies. The dataset turns
items into one time-major `Batch`.

An action is a whole number, int32, where the environment's are discrete, several `[D]` where it
takes several at once, and a vector `[D]`, float32, where they are bounded. It is the policy's
choice: `Agent.environment_action` turns it into the environment's, which for a squashed Gaussian is
the squashed vector.
"""

import dataclasses
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf

from replay.layout import Layout

Nest = Any  # a structure of arrays or tensors, as dm-tree understands it
Array: TypeAlias = np.ndarray | tf.Tensor

FIRST, MID, LAST = 0, 1, 2  # the values of dm_env.StepType
UNKNOWN = -1  # the learner step of an item in which another agent's parameters acted
DEMONSTRATOR = -1  # the actor of an item that was not played in the run, but recorded before
NO_ACTION = -1  # the previous action of an episode's first step; zeros where actions are bounded


class Step(NamedTuple):
    """One row of the stream of N environments."""

    observation: Nest  # [N, ...] as the environment gave it: single frames, uint8
    step_type: np.ndarray  # [N] uint8: FIRST, MID or LAST
    lives: np.ndarray  # [N] uint8: lives left when the observation was made; 0 where there are none
    action: np.ndarray  # [N] int32, or [N, D] int32 or float32
    log_probability: np.ndarray  # [N] float32: log mu(a|x) of the behaviour policy
    reward: np.ndarray  # [N] float32: raw
    continuation: np.ndarray  # [N] float32: 0 or 1


class Record(NamedTuple):
    """The small parts of rows `[...]`."""

    step_type: Array  # [...] uint8
    lives: Array  # [...] uint8
    action: Array  # [...] int32, or [..., D] int32 or float32
    log_probability: Array  # [...] float32
    reward: Array  # [...] float32
    continuation: Array  # [...] float32


class Block(NamedTuple):
    """K consecutive rows of one environment, the C before them, and the row after them.

    Of the row after them only the observation counts. A block that an episode's end cut short holds
    zeros behind it, and the first block of an episode or stream may hold zeros before it.
    """

    observation: Nest  # [C + K + 1, ...]
    records: Array  # [C + K + 1, W] int32, packed by `replay.blocks`


class Header(NamedTuple):
    """The place of an item's rows in its blocks, and their origin: int64 scalars.

    An item stores them as one column: seven would cost 6 kB more of the server's memory.
    """

    start: Array  # the item's first real row, counted from the first block's first own row
    padding: Array  # masked rows before it: the part of the burn-in the episode does not have
    num_rows: Array  # real rows from `start` on, burn-in included, the row after the last excluded
    learner_step: Array  # the learner step of the oldest parameters that acted in it
    task: Array
    actor: Array
    agent: Array  # index, in the program, of the agent that acted


class Item(NamedTuple):
    """The content of one Reverb item."""

    blocks: Block  # [num_blocks, ...] on every field; num_blocks varies from item to item
    header: Array  # [7] int64: the fields of a `Header`, in order
    core_state: Nest  # [...] the reading agent's recurrent state before row `start`, resets applied


class NetworkInput(NamedTuple):
    """The inputs of a network at one step, with any leading axes `[...]`."""

    observation: Nest  # [..., *] uint8 images stacked on their last axis, vectors as they are
    previous_action: Array  # [...] or [..., D], as actions; NO_ACTION or 0 at an episode's start
    previous_reward: Array  # [...] float32, raw; 0 at an episode's first step


class TrainedRows(NamedTuple):
    """The rows of a batch that are learned from: its last L, those after the burn-in."""

    action: tf.Tensor  # [L, B] int32, or [L, B, D] int32 or float32
    log_probability: tf.Tensor  # [L, B] float32
    reward: tf.Tensor  # [L, B] float32, raw
    continuation: tf.Tensor  # [L, B] float32
    mask: tf.Tensor  # [L, B] float32: 1 on real steps
    life_lost: tf.Tensor  # [L + 1, B] bool


class Batch(NamedTuple):
    """A learner's batch: time-major. T = burn_in + length; row T is only there to bootstrap from.

    A row is *valid* when it holds an observation (a step's, or the one after the last step);
    padding is not. Only valid rows advance a recurrent core. `mask` marks the rows of real steps:
    `LAST` rows and the observation after the item's last step are valid but not in the mask. Padded
    rows are zero.

    Images come as single frames `[k + T, B, H, W]` or `[..., C]`, k - 1 of them before row 0. An
    update's first step is `replay.frames.stacked`.
    """

    inputs: NetworkInput  # [T + 1, B, ...]
    reset: tf.Tensor  # [T + 1, B] bool: the core state resets *before* this row (it is a FIRST row)
    valid: tf.Tensor  # [T + 1, B] bool
    life_lost: tf.Tensor  # [T + 1, B] bool: a life was lost between the row before and this one
    action: tf.Tensor  # [T, B] int32, or [T, B, D] int32 or float32
    log_probability: tf.Tensor  # [T, B] float32
    reward: tf.Tensor  # [T, B] float32, raw
    continuation: tf.Tensor  # [T, B] float32
    mask: tf.Tensor  # [T, B] float32: 1 on real steps
    core_state: Nest  # [B, ...] before the first valid row
    key: tf.Tensor  # [B] uint64: Reverb's key of the item, unique in its shard
    shard: tf.Tensor  # [B] int32: index, among the replay servers, of the one that holds the item
    probability: tf.Tensor  # [B] float64: with which the item was sampled, of all shards' items
    table_size: tf.Tensor  # [B] int64: items in the table when it was sampled, in all shards
    learner_step: tf.Tensor  # [B] int64
    task: tf.Tensor  # [B] int64
    actor: tf.Tensor  # [B] int64
    agent: tf.Tensor  # [B] int64

    def trained(self, burn_in: int) -> TrainedRows:
        """The rows after the first `burn_in`."""
        return TrainedRows(*(getattr(self, name)[burn_in:] for name in TrainedRows._fields))


class PriorityInput(NamedTuple):
    """An actor's record of M finished items, for their first priorities: trained rows only."""

    values: dict[str, np.ndarray]  # [L + 1, M] each: the policy's `PolicyOutput.values`
    reward: np.ndarray  # [L, M] float32
    continuation: np.ndarray  # [L, M] float32
    life_lost: np.ndarray  # [L + 1, M] bool
    mask: np.ndarray  # [L, M] float32


@dataclasses.dataclass(frozen=True)
class TableSpec:
    """One Reverb table, and how the actors' stream is cut for it.

    Attributes:
      name: unique in a program; by convention the reading agent's name, with a suffix if it reads
        several.
      kind: `prioritized` samples by priority, `queue` hands out each item once, in order,
        `uniform` samples evenly.
      layout: how the stream is cut.
      max_size: items; the oldest leaves first.
      min_size: items before anything is sampled.
      samples_per_insert: samples of an item for each item inserted, on average; None does not
        limit.
      priority_exponent: alpha of prioritized sampling, P(i) ∝ p_i^alpha.
      paces: whether writers wait for this table's reader. One full table stops a Reverb writer for
        all its tables, so of several readers of one stream only one should. A table that does not
        pace still limits sampling by `samples_per_insert`, and as a queue drops its oldest item.
      waits: whether sampling waits for inserts, or may go beyond `samples_per_insert`.
    """

    name: str
    kind: Literal["prioritized", "queue", "uniform"]
    layout: Layout
    max_size: int
    min_size: int = 1
    samples_per_insert: float | None = None
    priority_exponent: float = 1.0
    paces: bool = True
    waits: bool = True
