"""Pixel control: an auxiliary task that learns to change the image.

Jaderberg et al. 2016; here as Hessel et al. 2018 describe it (Appendix, "Pixel Control"). The image
is cut into cells of 4 x 4 pixels. How much a cell changes in one step is its pseudo-reward, and
n-step Q-learning gives each cell action values of its own, off-policy, from whatever was played.
Only the learner has the head for them: it shapes the features that policy and value share.

    72 x 96   -> 18 x 24 cells
    84 x 84   -> 80 x 80, the centre -> 20 x 20 cells, because the head cannot give 21 x 21
"""

from collections.abc import Callable
from typing import NamedTuple

import sonnet as snt
import tensorflow as tf

from agents.masking import zero_where_masked
from agents.networks.network import apply_to_rows
from replay.structures import Nest
from tensor_ops import xla
from tensor_ops.elementwise import as_float

CELL = 4  # pixels on a side
DISCOUNT = 0.9
CHANNELS = 32
LEAST_SIDE = 32  # pixels: the head's smallest grid is 8 x 8


class Grid(NamedTuple):
    """Cells of an image."""

    rows: int
    columns: int

    @classmethod
    def of(cls, image_shape: tuple[int, ...]) -> "Grid":
        """The largest grid for images `[H, W]` or `[H, W, C]` that the head can give.

        Its last layer doubles the size of its inputs and adds two: the numbers must be even.

        Raises:
          ValueError: for anything that is no image, and for images that are too small.
        """
        if len(image_shape) not in (2, 3) or min(image_shape[:2]) < LEAST_SIDE:
            raise ValueError(
                f"Pixel control needs images of at least {LEAST_SIDE} x {LEAST_SIDE} pixels, got "
                f"observations of shape {tuple(image_shape)}."
            )
        return cls(*(side // (2 * CELL) * 2 for side in image_shape[:2]))


class PixelControlHead(snt.Module):
    """Action values of every cell, from the core's output.

        Q_ij(x, a) = V_ij(x) + A_ij(x, a) − 1/|A| Σ_a' A_ij(x, a')

    Args:
      grid: of cells; h x w.
      num_actions: A.
    """

    def __init__(self, grid: Grid, num_actions: int) -> None:
        super().__init__()
        # Backwards through the layers: 4 x 4 with stride 2, then 3 x 3, none of them padded.
        middle = [side // 2 - 1 for side in grid]
        self._smallest = [side - 2 for side in middle]
        self._linear = snt.Linear(self._smallest[0] * self._smallest[1] * CHANNELS)
        self._deconvolution = snt.Conv2DTranspose(CHANNELS, 3, middle, padding="VALID")
        self._value, self._advantage = (
            snt.Conv2DTranspose(channels, 4, list(grid), stride=2, padding="VALID")
            for channels in (1, num_actions)
        )

    def __call__(self, x: Nest) -> tf.Tensor:
        """`[B, D]` -> `[B, h, w, A]`; with legal actions beside it, the mean is over these."""
        x, legal = x if isinstance(x, tuple) else (x, None)
        x = tf.nn.relu(self._linear(x))
        x = tf.reshape(x, [-1, *self._smallest, CHANNELS])
        x = tf.nn.relu(self._deconvolution(x))
        advantage = self._advantage(x)
        if legal is not None:
            legal = legal._replace(actions=legal.actions[:, tf.newaxis, tf.newaxis])  # of all cells
            return legal.only(self._value(x) + advantage - legal.mean(advantage))
        return self._value(x) + advantage - tf.reduce_mean(advantage, axis=-1, keepdims=True)


class PixelControl(tf.Module):
    """The auxiliary loss, with the head it trains.

    Args:
      image_shape: `[H, W]` or `[H, W, C]`, of the environment's single frames.
      num_actions: A.
      core_size: D, of the core's output.
    """

    def __init__(self, image_shape: tuple[int, ...], num_actions: int, core_size: int) -> None:
        super().__init__(name="pixel_control")
        self.grid = Grid.of(image_shape)
        self.head = PixelControlHead(self.grid, num_actions)
        self.head(tf.zeros([1, core_size]))  # makes its variables
        self._frame_channels = image_shape[2] if len(image_shape) == 3 else 1

    def loss(
        self,
        core_output: Nest,
        observation: tf.Tensor,
        action: tf.Tensor,
        continuation: tf.Tensor,
        mask: tf.Tensor,
    ) -> tf.Tensor:
        """The loss of an unroll's trained rows and the last one, a scalar.

        Args:
          core_output: `[L + 1, B, D]`, perhaps with legal actions beside it.
          observation: `[L + 1, B, H, W, C * k]`, k stacked frames, the newest one last.
          action, continuation, mask: `[L, B]`, as in `TrainedRows`.
        """
        frames = observation[..., -self._frame_channels :]
        reward = pseudo_rewards(frames, self.grid)
        q = apply_to_rows(self.head, core_output)
        return q_learning_loss(q, action, reward, DISCOUNT * continuation, mask)


def pseudo_rewards(frames: tf.Tensor, grid: Grid) -> tf.Tensor:
    """How much each cell changed, in [0, 1] for `uint8` frames.

        r_t,ij = mean over cell ij's pixels (and channels) of |frame_{t+1} − frame_t|

    Args:
      frames: `[L + 1, B, H, W, C]`, single ones; the grid lies in the middle.

    Returns:
      `[L, B, h, w]`; a row's followed its action.
    """
    height, width = frames.shape[2:4]
    rows, columns = CELL * grid.rows, CELL * grid.columns
    top, left = (height - rows) // 2, (width - columns) // 2
    change = _change(frames[:, :, top : top + rows, left : left + columns])
    means = tf.nn.avg_pool2d(tf.reshape(change, [-1, rows, columns, 1]), CELL, CELL, "VALID")
    return tf.reshape(means, [-1, tf.shape(frames)[1], *grid])


@xla.compiled
def _change(frames: tf.Tensor) -> tf.Tensor:
    """`[L + 1, B, H, W, C]` -> `[L, B, H, W]`, the mean of channels."""
    before, after = as_float(frames[:-1]), as_float(frames[1:])
    return tf.reduce_mean(tf.abs(after - before), axis=-1)


def q_learning_loss(
    q: tf.Tensor, action: tf.Tensor, reward: tf.Tensor, discount: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
    """The squared error of all cells' action values, summed over cells, batch and time.

        ½ Σ_tb mask_tb Σ_ij (G_tb,ij − Q_ij(x_tb, a_tb))²

    The paper does not say whether to sum. Jaderberg et al. sum over their auxiliary tasks, and each
    cell is one; IMPALA sums over batch and time.

    Args:
      q: `[L + 1, B, h, w, A]`; only the values of the actions taken have a gradient.
      reward: `[L, B, h, w]`.
      action, discount, mask: `[L, B]`.
    """
    tf.debugging.assert_shapes(
        [(q, ("K", "B", "h", "w", "A")), (reward, ("L", "B", "h", "w"))]
        + [(x, ("L", "B")) for x in (action, discount, mask)]
    )
    target = n_step_targets(tf.reduce_max(q, axis=-1), reward, discount, mask)
    taken = _taken(q, action)
    error = tf.reduce_sum(tf.square(tf.stop_gradient(target) - taken), axis=[2, 3])  # [L, B]
    return 0.5 * tf.reduce_sum(zero_where_masked(error, mask))


@tf.custom_gradient
def _taken(q: tf.Tensor, action: tf.Tensor) -> tuple[tf.Tensor, Callable[..., tuple]]:
    """The values of the actions taken: `[L + 1, B, h, w, A]` and `[L, B]` -> `[L, B, h, w]`.

    TensorFlow's gradient would scatter them, and write the others' zeros several times.
    """
    rows = tf.broadcast_to(action[..., tf.newaxis, tf.newaxis], tf.shape(q)[:-1] - [1, 0, 0, 0])

    def gradient(of_taken: tf.Tensor) -> tuple[tf.Tensor, None]:
        return _at_actions(of_taken, action, q.shape[-1]), None

    return tf.gather(q[:-1], rows, axis=-1, batch_dims=4), gradient


@xla.compiled
def _at_actions(x: tf.Tensor, action: tf.Tensor, num_actions: int) -> tf.Tensor:
    """Zeros `[L + 1, B, h, w, A]` but for x `[L, B, h, w]` at the actions that were taken."""
    # No number is the action of the last row.
    action = tf.pad(action, [[0, 1], [0, 0]], constant_values=-1)
    x = tf.pad(x, [[0, 1], [0, 0], [0, 0], [0, 0]])
    chosen = tf.range(num_actions, dtype=action.dtype) == action[..., None, None, None]
    return tf.where(chosen, x[..., tf.newaxis], tf.zeros([], x.dtype))


def n_step_targets(
    value: tf.Tensor, reward: tf.Tensor, discount: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
    """Rewards up to the end of the rollout or of the episode, and then the value there.

        G_t = r_t + γ_t G_{t+1},   G_t = V(x_t) on the last row and on rows that hold no step

    Args:
      value: `[L + 1, B, h, w]`, V, the largest action value.
      reward: `[L, B, h, w]`.
      discount: `[L, B]`, γ; 0 where the episode ended, so that the row after it counts for nothing.

    Returns:
      `[L, B, h, w]`.
    """
    discounts, masks = (tf.unstack(x[..., tf.newaxis, tf.newaxis]) for x in (discount, mask))
    rewards, values = tf.unstack(reward), tf.unstack(value)
    targets = [values[-1]]
    for t in range(len(rewards) - 1, -1, -1):
        followed = rewards[t] + discounts[t] * targets[-1]
        targets.append(tf.where(masks[t] > 0, followed, values[t]))
    return tf.stack(targets[:0:-1])
