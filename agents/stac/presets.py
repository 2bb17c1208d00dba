"""STAC and STACX on two cores: IMPALA's values, by which the outer loss is IMPALA's."""

from typing import Any

from agents.entry import Kind, Values
from agents.impala import presets as impala

SHARED = impala.SHARED

# What IMPALA's values leave to its own defaults: those of the paper are for other batches.
_AS_IMPALA: dict[str, Any] = dict(discount=0.99, max_gradient_norm=40.0)

LOCAL: dict[Kind, Values] = {
    kind: _AS_IMPALA | dict(values) for kind, values in impala.LOCAL.items()
}
