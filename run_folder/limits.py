"""The limits that a run ends at, and what raises those that it has reached."""

import contextlib
from collections.abc import Mapping

from run_folder import checkpoints, snapshots
from run_folder.checkpoints import CheckpointError, Manifests
from run_folder.settings import Settings, SettingsError

_FURTHER = 2  # times the limit that was reached


def of(run: Settings) -> dict[str, int | None]:
    """A run's limits, by the name of what they count; None is no limit."""
    return {"actor_steps": run.max_actor_steps, "learner_steps": run.max_learner_steps}


def reached(limits: Mapping[str, int | None], made: Mapping[str, float]) -> dict[str, int]:
    """Those limits that were reached."""
    return {
        name: limit for name, limit in limits.items() if limit is not None and made[name] >= limit
    }


def raising(limits: Mapping[str, int | None], made: Mapping[str, float]) -> list[str]:
    """The flags without which a run that is resumed would end at once: of each limit it reached."""
    found = reached(limits, made)
    further = {name: max(_FURTHER * limit, int(made[name]) + 1) for name, limit in found.items()}
    return [f"--max_{name}={limit}" for name, limit in further.items()]


def check(run: Settings, step: int | None) -> None:
    """Checks that a run that goes on would not end at once.

    Args:
      run: its settings.
      step: of the learner that was kept and is gone back to; None goes on from what is newest.

    Raises:
      SettingsError: it has reached a limit. It says which flag goes beyond.
    """
    saved: Manifests = {}
    with contextlib.suppress(CheckpointError):  # which is told by `resuming`, with the ways out
        if step is not None:
            saved[run.paced_by] = snapshots.read(run.folder.checkpoints, run.paced_by, step)
        for name in run.agents if step is None else ():
            file = checkpoints.manifest_name(name, run.paced_by)
            if (manifest := checkpoints.parse(run.folder.checkpoints, file)) is not None:
                saved[name] = manifest
    updates = [saved[name].learner_step if name in saved else 0 for name in run.agents]
    counts = checkpoints.counts(saved)
    made = {"actor_steps": counts["actor_steps"], "learner_steps": min(updates)}
    if flags := raising(of(run), made):
        given = " and ".join(f"--max_{name}={n}" for name, n in reached(of(run), made).items())
        raise SettingsError(
            f"{run.run_dir} has reached {given}: it has made {made['actor_steps']:,} actor steps "
            f"and {made['learner_steps']:,} updates. To go on, raise that: --resume "
            f"{' '.join(flags)}."
        )
