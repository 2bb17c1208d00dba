"""From an observation, of one part or several, to one vector: a torso for each part.

    images [B, H, W(, C)]  --torso, one each-----------+
    words  [B, L]          --language, one for all-----+--> [B, D]
    vector [B, N]          --fully connected layers----+

An observation is one array or a dictionary of them, as `environments.copies.conversion` makes it.
An array's kind follows from its spec: words are integers other than bytes, an image has two axes
or three.
The torso that a config names is the images', or the vector's where there is no image.
"""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sonnet as snt
import tensorflow as tf
from acme import specs

from agents.networks.language import Language
from agents.networks.torsos import MLPTorso, make_torso
from environments.copies.vector import has_mask
from replay.frames import is_image
from replay.structures import Nest

IMAGE = "image"


class Words(snt.Module):
    """The torso of an observation that is nothing but words.

    Args:
      num_words: as for `Language`.
    """

    def __init__(self, num_words: int) -> None:
        super().__init__()
        self._language = Language(num_words)

    def __call__(self, observation: tf.Tensor) -> tf.Tensor:
        """`[B, L]` -> `[B, 64]`."""
        return self._language(observation)


class Parts(snt.Module):
    """A torso for observations of several parts.

    Args:
      torsos: name of a part -> its torso, `[B, ...]` -> `[B, D]`; at least one.
      words: names of the parts that are words.
      language: reads them; None where there are none.
    """

    def __init__(
        self, torsos: Mapping[str, snt.Module], words: Sequence[str], language: Language | None
    ) -> None:
        super().__init__()
        self._names, self._words = tuple(torsos), tuple(words)
        self._torso, *self._others = torsos.values()
        self._language = language

    def __call__(self, observation: Mapping[str, Nest]) -> tf.Tensor:
        """-> `[B, D]`: the torsos' vectors in their order, then the words'."""
        vectors = [self._of(i)(observation[name]) for i, name in enumerate(self._names)]
        if self._language is not None:
            read = [self._language(observation[name]) for name in self._words]
            vectors += [tf.cast(x, vectors[0].dtype) for x in read]
        return tf.concat(vectors, axis=-1)

    def _of(self, part: int) -> snt.Module:
        return self._others[part - 1] if part else self._torso


def masks() -> Any:
    """`agents.legal_actions`, which most runs do without."""
    return importlib.import_module("agents.legal_actions")


def torso_of(
    observations: Nest,
    kind: str,
    hidden_sizes: Sequence[int],
    w_init: snt.initializers.Initializer | None = None,
    dtype: tf.DType = tf.float32,
) -> snt.Module:
    """The torso of an environment's observations.

    Args:
      observations: specs of one environment's, as `environments.copies.spec.spec_of` makes them,
        without a mask of legal actions.
      kind: as `make_torso` takes it.
      hidden_sizes: the layers of an `mlp`, and of a vector beside images.
      w_init: as `make_torso` takes it.
      dtype: of the arithmetic.

    Raises:
      ValueError: as `make_torso`; several parts, all of them words.
    """
    is_one = isinstance(observations, specs.Array)
    parts = {"observation": observations} if is_one else observations
    words = sorted(name for name, part in parts.items() if _is_words(part))
    arrays = sorted(name for name in parts if name not in words)
    images = [name for name in arrays if is_image(len(parts[name].shape))]
    num_words = max((int(np.max(parts[name].maximum)) for name in words), default=0)
    if not arrays and len(words) == 1:
        return Words(num_words)
    if not arrays:
        raise ValueError(f"Beside words there must be an array, got {', '.join(words)} alone.")
    torsos: dict[str, snt.Module] = {}
    for name in (*images, *(name for name in arrays if name not in images)):
        is_named = name in images or not images
        torsos[name] = (
            make_torso(kind, hidden_sizes, w_init, dtype)
            if is_named
            else MLPTorso(hidden_sizes, dtype)
        )
    if is_one:
        return torsos[arrays[0]]
    return Parts(torsos, words, Language(num_words) if words else None)


def image_of(observation: Nest) -> Any:
    """The image that pixel control looks at, in an observation or in its specs.

    Raises:
      ValueError: several parts, and none of this name.
    """
    if has_mask(observation):
        observation = masks().shown(observation)
    if not isinstance(observation, Mapping):
        return observation
    if IMAGE not in observation:
        raise ValueError(
            f"Pixel control needs a part called {IMAGE!r}, got {', '.join(observation)}."
        )
    return observation[IMAGE]


def _is_words(part: specs.Array) -> bool:
    return part.dtype.kind in "iu" and part.dtype.itemsize > 1 and len(part.shape) == 1
