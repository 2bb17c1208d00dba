"""Prints the CLUSTER_SPEC of one process of a job; without --rank, who is where."""

import json
from collections.abc import Sequence

from absl import flags

from launch import command_line
from launch.hosts import cluster_spec, job

_HOSTS = flags.DEFINE_list(
    "hosts", None, "Of the processes, in the order of their ranks: node1,node1."
)
_PORT = command_line.define_whole(
    "port", 2222, "Of the first process on a host; the next has 2223."
)
_RANK = command_line.define_whole("rank", None, "Of the process that asks.")
_SECTIONS: command_line.Sections = {"Which process of which job": ("job", "hosts", "port", "rank")}


@command_line.ending()
def main(_: Sequence[str]) -> None:
    folders = job.read(command_line.JOB.value)
    pools = {name: pool.labels for name, pool in folders.items()}
    hosts, port, rank = _HOSTS.value or [], _PORT.value or 0, _RANK.value or 0
    said = cluster_spec.write(pools, hosts, port=port, rank=rank)
    if _RANK.value is not None:
        print(json.dumps(said))
        return
    labels = [label for pool in pools.values() for label in pool]
    addresses = [address for pool in said["cluster"].values() for address in pool]
    for number, (label, address) in enumerate(zip(labels, addresses, strict=True)):
        print(f"{number:4}  {label:16}{address}")


if __name__ == "__main__":
    command_line.run(main, _SECTIONS)
