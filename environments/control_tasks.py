"""The names of the continuous tasks, which need nothing installed.

`control:<domain>/<task>` and `control-pixels:<domain>/<task>` are of the DeepMind Control Suite
(Tassa et al. 2018), `rwrl:<domain>/<task>/<level>` of the Real-World RL suite (Dulac-Arnold et al.
2020), whose levels combine delays, noise, perturbations and more dimensions.
"""

import difflib
from collections.abc import Sequence

BENCHMARKING = (
    "acrobot/swingup",
    "acrobot/swingup_sparse",
    "ball_in_cup/catch",
    "cartpole/balance",
    "cartpole/balance_sparse",
    "cartpole/swingup",
    "cartpole/swingup_sparse",
    "cheetah/run",
    "finger/spin",
    "finger/turn_easy",
    "finger/turn_hard",
    "fish/swim",
    "fish/upright",
    "hopper/hop",
    "hopper/stand",
    "humanoid/run",
    "humanoid/stand",
    "humanoid/walk",
    "manipulator/bring_ball",
    "pendulum/swingup",
    "point_mass/easy",
    "reacher/easy",
    "reacher/hard",
    "swimmer/swimmer15",
    "swimmer/swimmer6",
    "walker/run",
    "walker/stand",
    "walker/walk",
)
"""The 28 that the suite's authors compare agents on."""

# All others but the two of LQR, which have no time limit and whose actions reach 1e10.
_EXTRA = (
    "cartpole/three_poles",
    "cartpole/two_poles",
    "dog/fetch",
    "dog/run",
    "dog/stand",
    "dog/trot",
    "dog/walk",
    "humanoid/run_pure_state",
    "humanoid_CMU/run",
    "humanoid_CMU/stand",
    "humanoid_CMU/walk",
    "manipulator/bring_peg",
    "manipulator/insert_ball",
    "manipulator/insert_peg",
    "point_mass/hard",
    "quadruped/escape",
    "quadruped/fetch",
    "quadruped/run",
    "quadruped/walk",
    "stacker/stack_2",
    "stacker/stack_4",
)

CONTROL = tuple(sorted((*BENCHMARKING, *_EXTRA)))
"""What can follow `control:` and `control-pixels:`."""

LEVELS = ("none", "easy", "medium", "hard")

_RWRL = ("cartpole/swingup", "humanoid/walk", "quadruped/walk", "walker/walk")

RWRL = tuple(f"{task}/{level}" for task in _RWRL for level in LEVELS)
"""What can follow `rwrl:`: the tasks that have combined challenges, at each level."""

TASKS = {"control": CONTROL, "control-pixels": CONTROL, "rwrl": RWRL}


def advice(kind: str, task: str) -> str:
    """The end of a sentence about a task that is none: the nearest names, or else all of them.

    Args:
      kind: one of `TASKS`.
      task: what followed it.
    """
    known = TASKS[kind]
    near = difflib.get_close_matches(task, known, n=1, cutoff=0.9)
    domain = task.partition("/")[0]
    near = near or [name for name in known if domain and name.startswith(f"{domain}/")]
    near = near or difflib.get_close_matches(task, known, n=4)
    if near:
        return f"did you mean {_either([f'{kind}:{name}' for name in near])}?"
    form = "<domain>/<task>/<level>" if kind == "rwrl" else "<domain>/<task>"
    return f"expected {kind}:{form}, one of {', '.join(known)}."


def _either(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last
