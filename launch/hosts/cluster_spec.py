"""The environment variable CLUSTER_SPEC: which node a process is, and where all others are.

Vertex AI sets it on each of its hosts; `launch.cluster` writes the same for any other scheduler:

    {"cluster": {"workerpool0": ["host:port"], "workerpool1": ["host:port", ...], ...},
     "task": {"type": "workerpool1", "index": 0}}
"""

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from launch.hosts.job import JobError
from recurrent_replay import command

VARIABLE = "CLUSTER_SPEC"
_LAST_PORT = 2**16 - 1
_ADDRESS = re.compile(r"\S+:([0-9]{1,5})")


@dataclasses.dataclass(frozen=True)
class Place:
    """A process's place, as CLUSTER_SPEC says."""

    pool: str
    index: int  # of the node in its pool
    addresses: dict[str, list[str]]  # host:port of each pool's nodes

    @property
    def address(self) -> str:
        """The node's own, host:port."""
        return self.addresses[self.pool][self.index]


def write(
    pools: Mapping[str, Sequence[str]], hosts: Sequence[str], *, port: int, rank: int
) -> dict[str, Any]:
    """CLUSTER_SPEC for one of a job's processes.

    The processes are numbered through all pools in their order. Each has a port of its own: the
    first on a host has `port`, the second `port` + 1.

    Args:
      pools: labels of each pool's nodes.
      hosts: of the process of every rank; one may occur several times.
      port: the first that is used on a host.
      rank: of the process that is told.

    Raises:
      JobError: when hosts are missing, too many, or there is no such rank or port.
    """
    ranks = [(pool, i, label) for pool, labels in pools.items() for i, label in enumerate(labels)]
    if len(hosts) != len(ranks) or not all(hosts):
        labels = ", ".join(label for *_, label in ranks)
        raise JobError(
            f"--hosts must name the hosts of {len(ranks)} processes ({labels}), one for each, "
            f"got {len([host for host in hosts if host])}."
        )
    if not 0 <= rank < len(ranks):
        raise JobError(f"--rank must lie between 0 and {len(ranks) - 1}, got {rank}.")
    seen: Counter[str] = Counter()
    addresses: dict[str, list[str]] = {pool: [] for pool in pools}
    for host, (pool, *_) in zip(hosts, ranks, strict=True):
        addresses[pool].append(f"{host}:{port + seen[host]}")
        seen[host] += 1
    last = port + max(seen.values()) - 1
    if not 1 <= port <= last <= _LAST_PORT:
        raise JobError(f"--port={port} leads to ports up to {last}; they end at {_LAST_PORT}.")
    pool, index, _ = ranks[rank]
    return {"cluster": addresses, "task": {"type": pool, "index": index}}


def read(environment: Mapping[str, str], pools: Mapping[str, Sequence[str]]) -> Place:
    """The place that the environment names, checked against a job.

    Args:
      environment: variables of the process.
      pools: labels of the nodes of those of the job's pools that are on this host.

    Raises:
      JobError: when it does not say which of the job's nodes this process is.
    """
    text = environment.get(VARIABLE)
    if not text:
        raise JobError(
            f"The environment variable {VARIABLE} must say which node this is: "
            f"{command('cluster')} writes it."
        )
    try:
        said = json.loads(text)
        place = Place(str(said["task"]["type"]), int(said["task"]["index"]), said["cluster"])
        _check_addresses(place)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise JobError(
            f'{VARIABLE} must be {{"cluster": {{"<pool>": ["<host>:<port>", ...]}}, "task": '
            f'{{"type": "<pool>", "index": <number>}}}}, got {text:.300}: {error!r:.300}.'
        ) from None
    if place.pool not in pools:
        raise JobError(
            f"{VARIABLE} names the pool {place.pool!r}, but there is {', '.join(pools)} here."
        )
    labels = pools[place.pool]
    if not 0 <= place.index < len(labels):
        raise JobError(
            f"{VARIABLE} makes this number {place.index} of {place.pool}, but the job's nodes are "
            f"{len(labels)}, from 0: {', '.join(labels)}."
        )
    for pool, labels in pools.items():
        if len(known := place.addresses.get(pool, [])) != len(labels):
            raise JobError(
                f"{VARIABLE} has {len(known)} addresses of {pool}, but the job's nodes there are "
                f"{len(labels)}: {', '.join(labels)}."
            )
    return place


def _check_addresses(place: Place) -> None:
    """Raises ValueError for one that is none, or two nodes'."""
    found = [address for pool in place.addresses.values() for address in pool]
    for address in found:
        match = _ADDRESS.fullmatch(address)
        if not (match and 0 < int(match[1]) <= _LAST_PORT):
            raise ValueError(f"{address!r} is no address with a port from 1 to {_LAST_PORT}")
        if found.count(address) > 1:
            raise ValueError(f"{address!r} is the address of two nodes")
