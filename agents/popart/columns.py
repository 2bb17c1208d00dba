"""What the columns of PopArt-IMPALA's log mean."""

from agents.entry import Band
from agents.impala import columns as impala

COLUMNS = impala.COLUMNS

BAND = Band(
    title="PopArt",
    mean="mu",
    deviation="sigma",
    letters=("μ", "σ"),
    note="The mean μ of each task's value targets, in its rewards' own units; what lies within one "
    "standard deviation σ is shaded.",
)
