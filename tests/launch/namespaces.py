"""Hosts in a box: network namespaces with an address each, joined by a bridge, with no way out.

    switch (a namespace)       host learner          host actor0
      bridge --- port0 ------- eth0 10.77.0.1        |
             --- port1 ----------------------------- eth0 10.77.0.2

A cable can be pulled and put back, and a host can lose its power. Needs root and iproute2.
"""

import contextlib
import os
import pathlib
import secrets
import signal
import subprocess
from collections.abc import Mapping, Sequence

import pytest

_SUBNET = "10.77.0"


class Host:
    """One namespace; `Network.add` makes it.

    Attributes:
      address: IPv4.
    """

    def __init__(self, switch: str, namespace: str, port: str, address: str) -> None:
        self._switch = switch
        self._namespace = namespace
        self._port = port
        self.address = address

    def within(self, command: Sequence[str]) -> list[str]:
        """A command, as it is to be run to run on the host."""
        return ["ip", "netns", "exec", self._namespace, *command]

    def start(
        self,
        command: Sequence[str],
        *,
        folder: pathlib.Path,
        environment: Mapping[str, str],
        output: pathlib.Path,
    ) -> "subprocess.Popen[bytes]":
        """Starts a process on the host; its output is added to a file."""
        with output.open("ab") as file:
            return subprocess.Popen(
                self.within(command),
                cwd=folder,
                env=environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def peers(self) -> set[str]:
        """Addresses of the hosts to which there are TCP connections."""
        sockets = subprocess.run(
            ["ip", "netns", "exec", self._namespace, "ss", "-Htn", "state", "established"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        addresses = (line.split()[-1].rpartition(":")[0] for line in sockets.splitlines())
        return {address.strip("[]").removeprefix("::ffff:") for address in addresses}

    def cut(self) -> None:
        """Pulls the cable in the middle: what is sent is lost, and no one is told."""
        _ip("-n", self._switch, "link", "set", self._port, "nomaster")

    def reconnect(self) -> None:
        """Puts the cable back."""
        _ip("-n", self._switch, "link", "set", self._port, "master", "bridge")

    def forget(self, address: str) -> None:
        """Gives up the connections with another host, which is not told while its cable is out."""
        subprocess.run(self.within(["ss", "-K", "-tn", "dst", address]), check=True)

    def lose_power(self) -> None:
        """Ends every process, with no word to anybody outside; the cable is out from then on."""
        self.cut()
        self.kill()

    def kill(self) -> None:
        """Ends every process of the host at once."""
        self.signal(signal.SIGKILL)

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to every process of the host."""
        for pid in _ip("netns", "pids", self._namespace).split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), number)


class Network:
    """Hosts that reach one another and nothing else. A context manager: its end ends them all."""

    def __init__(self) -> None:
        # Who was killed has left some behind, and in a container its process id comes again.
        self._name = f"hosts-{os.getpid()}-{secrets.token_hex(4)}"
        self._hosts: list[Host] = []
        self._namespaces: list[str] = []

    def __enter__(self) -> "Network":
        try:
            self._switch = self._add_namespace("switch")
            _ip("-n", self._switch, "link", "add", "bridge", "type", "bridge")
            _ip("-n", self._switch, "link", "set", "bridge", "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for host in self._hosts:
            host.kill()
        for namespace in self._namespaces:
            _ip("netns", "delete", namespace)

    def add(self) -> Host:
        """One more host, with the next address."""
        number = len(self._hosts) + 1
        namespace, port = self._add_namespace(str(number)), f"port{number}"
        address = f"{_SUBNET}.{number}"
        cable = ("type", "veth", "peer", "name", "eth0", "netns", namespace)
        _ip("link", "add", port, "netns", self._switch, *cable)
        _ip("-n", self._switch, "link", "set", port, "master", "bridge", "up")
        _ip("-n", namespace, "address", "add", f"{address}/24", "dev", "eth0")
        _ip("-n", namespace, "link", "set", "eth0", "up")
        self._hosts.append(Host(self._switch, namespace, port, address))
        return self._hosts[-1]

    def _add_namespace(self, suffix: str) -> str:
        namespace = f"{self._name}-{suffix}"
        _ip("netns", "add", namespace)
        self._namespaces.append(namespace)
        _ip("-n", namespace, "link", "set", "lo", "up")
        return namespace


def why_not() -> str:
    """Why there can be no namespaces here; nothing where there can."""
    try:
        with Network() as network:
            network.add()
    except FileNotFoundError:
        return "there is no command ip: install iproute2"
    except RuntimeError as error:
        return str(error)
    return ""


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(arguments)} said: {done.stderr.strip()}")
    return done.stdout


_WHY_NOT = why_not()
NEEDED = pytest.mark.skipif(bool(_WHY_NOT), reason=f"No network namespaces here: {_WHY_NOT}.")
