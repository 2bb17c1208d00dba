"""Google's end points on hosts of their own, and a user's that reaches nothing else."""

import contextlib
import os
import pathlib
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tests.launch.gcp import docker_engine, identity, rest, vertex
from tests.launch.namespaces import Host, Network
from tests.patience import wait_for

BUCKET = "some-bucket"
REPOSITORY = f"{vertex.REGION}-docker.pkg.dev/{identity.PROJECT}/images"


class Cloud(NamedTuple):
    """What there is.

    Attributes:
      folder: everything that the end points keep: buckets/, jobs/, images/.
      network: that nodes' hosts are added to.
      user: the host of the one who launches.
      pushed: names of the images that were pushed.
    """

    folder: pathlib.Path
    network: Network
    user: Host
    pushed: list[str]

    def within(self, command: Sequence[str] = ()) -> list[str]:
        """A command for a host to which Google's names are those of this network's hosts."""
        hosts = shlex.quote(str(self.folder / "hosts"))
        script = f'mount --bind {hosts} /etc/hosts && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", script, "sh", *command]

    def environment(self) -> dict[str, str]:
        """Variables of whoever is known to Google."""
        return {
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "HOME": str(self.folder / "home"),
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "DOCKER_HOST": f"unix://{self.folder}/docker.sock",
            **identity.environment(self.folder),
        }

    def jobs(self) -> list[dict[str, Any]]:
        """The jobs that were created, the first one first."""
        files = sorted((self.folder / "jobs").glob("*[0-9]"), key=lambda file: int(file.name))
        return [vertex.decode(file.read_bytes(), vertex.REQUEST) for file in files]

    def objects(self) -> set[str]:
        """Names of what is in the bucket."""
        files = (self.folder / "buckets" / BUCKET).iterdir()
        return {rest.named(file.name) for file in files}

    def read(self, name: str) -> str:
        """An object of the bucket."""
        return self.read_bytes(name).decode()

    def read_bytes(self, name: str) -> bytes:
        """The same of one that is no text."""
        return rest.file_of(self.folder, BUCKET, name).read_bytes()


@contextlib.contextmanager
def running(folder: pathlib.Path) -> Iterator[Cloud]:
    """A cloud whose project has an empty bucket and a repository."""
    identity.write(folder, [*rest.HOSTS, vertex.HOST])
    (folder / "buckets" / BUCKET).mkdir(parents=True)
    (folder / "home").mkdir()
    with Network() as network, docker_engine.serve(folder) as pushed:
        lines = ["127.0.0.1 localhost"]
        for module, names in ((rest, rest.HOSTS), (vertex, (vertex.HOST,))):
            host = network.add()
            lines += [f"{host.address} {name}" for name in names]
            _start(host, module.__name__, folder)
        (folder / "hosts").write_text("\n".join(lines) + "\n")
        yield Cloud(folder, network, network.add(), pushed)


def _start(host: Host, module: str, folder: pathlib.Path) -> "subprocess.Popen[bytes]":
    """Starts an end point on its host, and waits until it serves."""
    output = folder / f"{module}.txt"
    process = host.start(
        [sys.executable, "-m", module, str(folder)],
        folder=pathlib.Path(__file__).resolve().parents[3],
        environment={"PATH": os.environ["PATH"]},
        output=output,
    )
    wait_for(lambda: "serving" in output.read_text() or process.poll() is not None)
    assert process.poll() is None, output.read_text()
    return process
