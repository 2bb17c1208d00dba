"""The mean returns that tell memory from none in `memory:<task>`.

*Memoryless* means a function, possibly a random one, of the current observation alone. An agent
without recurrence that also receives its previous action is not memoryless in this sense: in
`memory:recall` it could repeat the cue as its action on every step and so carry it to the end.
"""

from environments.small_tasks import NUM_CUES

# Of the best memoryless policy. For `recall` it is exact: the guess at the query is right once in
# `NUM_CUES` times. For `cartpole` it is the best that a search over random policies found, whose
# probability of going right is a cubic polynomial of the observation through a sigmoid.
MEMORYLESS_OPTIMUM = {"recall": 2 / NUM_CUES - 1, "cartpole": 52.0}
PASS_MARK = {"recall": 0.8, "cartpole": 150.0}  # which only a policy with a memory reaches
