"""A run whose every node has a host of its own, started as a cluster's scheduler would start it."""

import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator

from launch.hosts import job
from tests.launch.namespaces import Host, Network
from tests.launch.runs import Watched, forked
from tests.patience import PATIENCE, wait_for


class Cluster(Watched):
    """Hosts, a job that `launch.train` has written, and the processes that run it.

    Args:
      network: that the hosts are added to.
      folder: that everything is written into: the run, the job, what each process prints.
      flags: of `launch.train`.
    """

    def __init__(self, network: Network, folder: pathlib.Path, *flags: str) -> None:
        self.path, self._job, self._folder = folder / "run", folder / "job", folder
        _printed_by("launch.train", f"--run_dir={self.path}", f"--job={self._job}", *flags)
        self._pools = job.read(self._job)
        self.labels = [label for pool in self._pools.values() for label in pool.labels]
        self.hosts: dict[str, Host] = {label: network.add() for label in self.labels}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, *labels: str) -> None:
        """Starts these nodes, from the sources in the job and not in this tree."""
        for label in labels:
            (pool,) = [name for name, pool in self._pools.items() if label in pool.labels]
            clean = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
            self._processes[label] = self.hosts[label].start(
                [sys.executable, "-m", "launch.node", f"--job={self._job}"],
                folder=self._job / pool,
                environment={**clean, "CLUSTER_SPEC": self.cluster_spec(label)},
                output=self._output(label),
            )

    def cluster_spec(self, label: str) -> str:
        """The output of `launch.cluster` for a node."""
        hosts = ",".join(host.address for host in self.hosts.values())
        rank = f"--rank={self.labels.index(label)}"
        return _printed_by("launch.cluster", f"--job={self._job}", f"--hosts={hosts}", rank).strip()

    def printed(self, label: str) -> str:
        """All that a node has printed."""
        file = self._output(label)
        return file.read_text(errors="replace") if file.exists() else ""

    def wait_until(self, holds: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """Waits while every process that was started, and not ended since by its host, lives."""

        def find() -> bool:
            if holds():
                return True
            for label, code in self._ended():
                raise AssertionError(f"{label} ended with {code}: {self.printed(label)[-3000:]}")
            return False

        wait_for(find, self.progress, seconds)

    def lose(self, label: str) -> None:
        """A node's host loses its power."""
        self.hosts[label].lose_power()
        self._processes.pop(label).wait()

    def kill(self, label: str) -> None:
        """A node dies by SIGKILL; its host and its address remain."""
        self.hosts[label].kill()
        self._processes.pop(label).wait()

    def wait(self, label: str) -> int:
        """The exit code of a node that ends by itself."""
        return self._processes.pop(label).wait(PATIENCE)

    def stop(self) -> dict[str, int]:
        """Asks the run to end; returns each process's exit code."""
        (self.path / "nodes" / "stop").touch()
        return {label: process.wait(PATIENCE) for label, process in self._processes.items()}

    def _ended(self) -> Iterator[tuple[str, int]]:
        for label, process in self._processes.items():
            if process.poll() is not None:
                yield label, process.returncode

    def _output(self, label: str) -> pathlib.Path:
        return self._folder / f"{label.replace('/', '-')}.txt"


def _printed_by(module: str, *arguments: str) -> str:
    """The output of a command that ends well."""
    outcome = forked().run(module, *arguments)
    assert outcome.code == 0, outcome.err
    return outcome.out
