"""What a run's settings must be for demonstrations. Imports no TensorFlow."""

from run_folder.settings import DEMO_FRACTION, Settings
from run_folder.texts import SettingsError


def check(run: Settings) -> None:
    """Refuses what demonstrations are wanted for, and what they do not go with.

    Raises:
      SettingsError: it says which flag, and what would be right.
    """
    given = f"--demonstrations={run.demonstrations}"
    fraction = ""
    if run.demo_fraction != DEMO_FRACTION:
        fraction = f"--demo_fraction={run.demo_fraction:g}"
    if not run.demonstrations:
        raise SettingsError(
            f"{fraction or '--max_actor_steps=0'} is for learning from demonstrations: add "
            "--demonstrations=<folder>, which launch.record makes."
        )
    if run.is_offline and fraction:
        raise SettingsError(
            f"{fraction} is a part of a batch, and with --max_actor_steps=0 all of it is from "
            "demonstrations: leave one of the two out."
        )
    for name in ("num_replay_shards", "learners_per_agent"):
        if (value := getattr(run, name)) > 1:
            raise SettingsError(f"{given} is for --{name}=1, got {value}.")
    if run.is_offline and run.actor_device != "cpu":
        raise SettingsError(
            f"--actor_device={run.actor_device} is of no use with --max_actor_steps=0: nobody acts."
        )
