"""R2D2 and its variants as they can be named."""

from agents.entry import Entry, imported
from r2d2 import presets
from r2d2.columns import COLUMNS
from r2d2.config import DMLAB_VARIANTS, VARIANTS

_PYTORCH = dict.fromkeys(("pytorch", "pytorch_tuned", "pytorch_compiled"), "pytorch:r2d2")
_ACME = {"acme": "acme:learner", "acme_unpadded": "acme:learner"}  # Acme has R2D2 alone

ENTRIES = {
    name: Entry(
        config,
        imported("r2d2.agent:make"),
        dmlab=DMLAB_VARIANTS[name],
        local=presets.LOCAL if config.lstm_size else presets.FEEDFORWARD,
        epsilon_field="evaluation_epsilon",
        columns=COLUMNS,
        rivals=_ACME | _PYTORCH if name == "r2d2" else _PYTORCH,
        networks=2,
    )
    for name, config in VARIANTS.items()
}
