"""The names of the continuous tasks, which need nothing installed.

`control:<domain>/<task>` and `control-pixels:<domain>/<task>` are of the DeepMind Control Suite
(Tassa et al. 2018), `rwrl:<domain>/<task>/<level>` of the Real-World RL suite (Dulac-Arnold et al.
2020), whose levels combine delays, noise, perturbations and more dimensions.
"""

import difflib


def _names(**domains: str) -> tuple[str, ...]:
    """The names of tasks, from the words that follow each domain."""
    return tuple(f"{domain}/{task}" for domain, tasks in domains.items() for task in tasks.split())


BENCHMARKING = _names(
    acrobot="swingup swingup_sparse",
    ball_in_cup="catch",
    cartpole="balance balance_sparse swingup swingup_sparse",
    cheetah="run",
    finger="spin turn_easy turn_hard",
    fish="swim upright",
    hopper="hop stand",
    humanoid="run stand walk",
    manipulator="bring_ball",
    pendulum="swingup",
    point_mass="easy",
    reacher="easy hard",
    swimmer="swimmer15 swimmer6",
    walker="run stand walk",
)
"""The 28 that the suite's authors compare agents on."""

# All others but the two of LQR, which have no time limit and whose actions reach 1e10.
_EXTRA = _names(
    cartpole="three_poles two_poles",
    dog="fetch run stand trot walk",
    humanoid="run_pure_state",
    humanoid_CMU="run stand walk",
    manipulator="bring_peg insert_ball insert_peg",
    point_mass="hard",
    quadruped="escape fetch run walk",
    stacker="stack_2 stack_4",
)

CONTROL = tuple(sorted((*BENCHMARKING, *_EXTRA)))
"""The tasks of `control:` and `control-pixels:`."""

RWRL = tuple(
    f"{task}/{level}"
    for task in ("cartpole/swingup", "humanoid/walk", "quadruped/walk", "walker/walk")
    for level in ("none", "easy", "medium", "hard")
)
"""The tasks of `rwrl:`: each that has combined challenges, at each level."""

TASKS = {"control": CONTROL, "control-pixels": CONTROL, "rwrl": RWRL}


def advice(kind: str, task: str, form: str) -> str:
    """Ends a sentence about a task that does not exist: the nearest names, or else all of them.

    Args:
      kind: one of `TASKS`.
      task: the rest of the name.
      form: of such a rest.
    """
    known = TASKS[kind]
    near = difflib.get_close_matches(task, known, n=1, cutoff=0.9)
    domain = task.partition("/")[0]
    near = near or [name for name in known if domain and name.startswith(f"{domain}/")]
    near = near or difflib.get_close_matches(task, known, n=4)
    if near:
        *others, last = (f"{kind}:{name}" for name in near)
        return f"did you mean {', '.join(others)}{' or ' * bool(others)}{last}?"
    return f"expected {kind}:{form}, one of {', '.join(known)}."
