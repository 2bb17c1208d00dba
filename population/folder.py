"""The paths in a population's folder."""

import pathlib

from run_folder.layout import RunFolder


class PopulationFolder:
    """The paths of a population.

    Args:
      path: its folder.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.settings = path / "population.json"  # `population.settings`
        self.listing = path / "population.jsonl"  # every decision, a line each
        self.decisions = path / "decisions"  # each in a file, 03-0002.json: `population.decisions`
        self.report = path / "report"  # the page that `launch.report` made

    def member(self, member: int) -> RunFolder:
        """The run folder of a member."""
        return RunFolder(self.path / "members" / name_of(member))

    def host(self, member: int) -> pathlib.Path:
        """The folder whose lock the process holds that trains a member alone."""
        return self.path / "hosts" / name_of(member)

    def output(self, member: int) -> pathlib.Path:
        """The output of a member's runs."""
        return self.path / "outputs" / f"{name_of(member)}.txt"


def name_of(member: int) -> str:
    """A member as its folder is called."""
    return f"{member:02}"


def is_population(path: pathlib.Path) -> bool:
    """Tells whether a folder is a population's."""
    return PopulationFolder(path).settings.exists()
