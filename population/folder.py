"""Where everything is in a population's folder.

lock                     held by the process that trains all members: `run_folder.run_lock`
population.json          what it is: `population.settings`
population.jsonl         every decision, a line each
decisions/03-0002.json   each decision, as it was made: `population.decisions`
members/03/              the run folder of a member
hosts/03/lock            held by the process that trains this member alone
outputs/03.txt           what the runs of a member printed
report/                  the page that launch.report makes of it
"""

import dataclasses
import pathlib

from run_folder.layout import RunFolder


@dataclasses.dataclass(frozen=True)
class PopulationFolder:
    """The paths of a population.

    Attributes:
      path: its folder.
    """

    path: pathlib.Path

    @property
    def settings(self) -> pathlib.Path:
        """What the population is."""
        return self.path / "population.json"

    @property
    def listing(self) -> pathlib.Path:
        """A line for each decision."""
        return self.path / "population.jsonl"

    @property
    def decisions(self) -> pathlib.Path:
        """A file for each decision."""
        return self.path / "decisions"

    @property
    def report(self) -> pathlib.Path:
        """The page of the population."""
        return self.path / "report"

    def member(self, member: int) -> RunFolder:
        """The run folder of a member."""
        return RunFolder(self.path / "members" / name_of(member))

    def host(self, member: int) -> pathlib.Path:
        """Whose lock the process holds that trains a member alone."""
        return self.path / "hosts" / name_of(member)

    def output(self, member: int) -> pathlib.Path:
        """What the runs of a member print."""
        return self.path / "outputs" / f"{name_of(member)}.txt"


def name_of(member: int) -> str:
    """A member as its folder is called."""
    return f"{member:02}"


def is_population(path: pathlib.Path) -> bool:
    """Whether a folder is a population's."""
    return PopulationFolder(path).settings.exists()
