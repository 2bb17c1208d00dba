"""Whose action values and recurrent states are looked at."""

from analysis.playing import evaluation
from analysis.playing.evaluation import Player
from run_folder import building, checkpoints
from run_folder.settings import Settings, SettingsError


def obstacle(run: Settings, name: str) -> str | None:
    """Why an agent's action values and memory cannot be looked at; None where it has both."""
    agent = building.make_agent(run, name)
    if not agent.has_action_values:
        return f"compares action values, and {name} learns none"
    if not agent.is_recurrent:
        return f"looks at a recurrent state, and {name} is feed-forward"
    return None


def newest_first(run: Settings, name: str, most: int) -> list[Player]:
    """The newest parameters of an agent, then those of its snapshots, the newest first.

    Args:
      run: its settings.
      name: of the agent.
      most: how many there may be in all.

    Raises:
      SettingsError: when the run cannot be played here.
      CheckpointError: when there are none, or some are damaged.
    """
    newest = evaluation.load(run, name)
    step = newest.played.learner_steps
    older = [s for s in checkpoints.kept_steps(run.folder.checkpoints, name) if s < step]
    chosen = sorted(older, reverse=True)[: most - 1]
    return [newest, *(evaluation.load(run, name, checkpoint=s) for s in chosen)]


def check(run: Settings, name: str, analysis: str) -> None:
    """Accepts an agent that learned in the run and has what an analysis looks at.

    Raises:
      SettingsError: for any other.
    """
    evaluation.check_agent(run, name)
    if analysis != "lag" and (reason := obstacle(run, name)):
        raise SettingsError(f"--analyses={analysis} {reason}.")
