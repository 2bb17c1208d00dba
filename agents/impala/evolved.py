"""What the papers' populations tune of IMPALA and PopArt-IMPALA, and where it begins."""

from collections.abc import Mapping

from environments import suites

# Espeholt et al. 2018, Table C.1; Hessel et al. 2018, Table 9.
_EVERYWHERE = dict(
    entropy_cost="log:5e-5:1e-2",
    learning_rate="log:5e-6:5e-3",
    rmsprop_epsilon="choice:1e-1,1e-3,1e-5,1e-7",
)
# On Atari both papers tune it; only the second gives a range.
_ATARI = dict(max_gradient_norm="uniform:10:100")


def evolved(env: str) -> Mapping[str, str]:
    """The ranges of what is tuned.

    Args:
      env: name of what is played.
    """
    return _EVERYWHERE | (_ATARI if suites.kind(env) == "atari" else {})
