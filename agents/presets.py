"""What the presets of an agent are: values of its Config, by the kind of what is played."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

Kind = Literal["atari", "dmlab", "image", "small"]
"""What presets tell apart: Atari, DeepMind Lab, other images for convolutions, the rest."""

Values = Mapping[str, Any]  # of fields of the agent's Config


@dataclasses.dataclass(frozen=True)
class Presets:
    """Where an agent's Config differs from the paper's, which are its defaults.

    Attributes:
      local: for two cores.
      shared: where other agents read the same stream, except on Atari; `local` goes before it.
    """

    local: Mapping[Kind, Values]
    shared: Values = dataclasses.field(default_factory=dict)
