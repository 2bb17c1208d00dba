"""Prints the CLUSTER_SPEC of one process of a job; without --rank, who is where."""

import argparse
import json
import pathlib
import sys
from collections.abc import Sequence

from launch import paths
from launch.hosts import cluster_spec, job
from recurrent_replay import command


def main(argv: Sequence[str]) -> int:
    """Prints; returns the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        pools = {name: pool.labels for name, pool in job.read(arguments.job).items()}
        hosts = arguments.hosts.split(",")
        rank = arguments.rank or 0
        said = cluster_spec.write(pools, hosts, port=arguments.port, rank=rank)
    except job.JobError as error:
        print(error, file=sys.stderr)
        return 2
    if arguments.rank is not None:
        print(json.dumps(said))
        return 0
    labels = [label for pool in pools.values() for label in pool]
    addresses = [address for pool in said["cluster"].values() for address in pool]
    for number, (label, address) in enumerate(zip(labels, addresses, strict=True)):
        print(f"{number:4}  {label:16}{address}")
    return 0


def _folder(text: str) -> pathlib.Path:
    try:
        return pathlib.Path(paths.folder(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=command("cluster"), description=__doc__)
    parser.add_argument(
        "--job", type=_folder, required=True, help="folder that launch.train --job=... wrote"
    )
    parser.add_argument(
        "--hosts", required=True, help="of the processes, in the order of their ranks: node1,node1"
    )
    parser.add_argument(
        "--port", type=int, default=2222, help="of the first process on a host; the next has 2223"
    )
    parser.add_argument("--rank", type=int, help="of the process that asks")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
