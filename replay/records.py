"""What a block knows of its rows beside their observations, in one column of whole numbers.

Reverb stores, sends and unpacks each column of a block by itself, and a small one costs it as much
as some frames of Atari do. So all of a row that is small shares one column, int32 `[..., W]`:

    step_type  lives  action, or each of its components  log_probability  reward  continuation

Floats are there by their bits, so nothing is rounded.
"""

import numpy as np
import tensorflow as tf
from acme import specs

from replay.structures import Record, Step

_BESIDES = len(Record._fields) - 1  # columns that are not of the action


def width(actions: specs.Array) -> int:
    """Columns that a row has.

    Args:
      actions: of one environment.
    """
    return _BESIDES + int(np.prod(actions.shape))


def pack(step: Step) -> np.ndarray:
    """The small parts of a row of N environments, `[N, W]` int32."""
    n = len(step.reward)
    parts = [getattr(step, name) for name in Record._fields]
    return np.concatenate([_bits(part).reshape(n, -1) for part in parts], axis=1)


def _bits(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "f":
        return np.ascontiguousarray(values, np.float32).view(np.int32)
    return values.astype(np.int32)


def unpack(packed: tf.Tensor, actions: specs.Array) -> Record:
    """The parts of rows `[..., W]`, each with the axes `[...]`; an action adds its own.

    Args:
      packed: as `pack` made them.
      actions: of one environment.
    """
    step_type, lives, *action, log_probability, reward, continuation = tf.unstack(packed, axis=-1)
    chosen = tf.stack(action, axis=-1) if actions.shape else action[0]
    floats = [tf.bitcast(part, tf.float32) for part in (log_probability, reward, continuation)]
    return Record(
        tf.cast(step_type, tf.uint8),
        tf.cast(lives, tf.uint8),
        tf.bitcast(chosen, tf.float32) if actions.dtype == np.float32 else chosen,
        *floats,
    )
