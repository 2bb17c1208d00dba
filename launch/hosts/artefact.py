"""A program as files that run anywhere: a folder for each pool of hosts that are alike.

    job/workerpool0/pool.json            what its hosts are for, its nodes' names, the run folder
    job/workerpool0/job.pkl              its nodes: functions, as Launchpad pickles them
    job/workerpool0/secret               what they show when they call each other
    job/workerpool0/launch/node.py ...   the project's source files, the entry point among them
    job/workerpool1/ ...

Whatever starts a process on each host, Vertex AI or another scheduler, tells it in the environment
variable CLUSTER_SPEC which node it is and where the others are; `launch.node` then runs that node.
Pools, their names and the way that addresses are found are those of Launchpad's `vertex_ai` launch.
"""

import collections
import dataclasses
import json
import pathlib
import shlex
import shutil
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import launchpad as lp
from launchpad.launch import serialization
from launchpad.nodes.python import addressing

from courier import credentials
from launch.graph.program import make_program
from launch.hosts import own_code
from launch.hosts.job import NODES_FILE, POOL_FILE, POOL_NAMES, SECRET_FILE
from recurrent_replay import ROOMS
from run_folder import checkpoints, layout
from run_folder.settings import Settings, SettingsError

ROOT = pathlib.Path(__file__).resolve().parents[2]
_BELOW_ALL = "recurrent_replay.py"  # which rooms ask whether their neighbours are the project's
POOL_OF = {"coordinator": "actor", "evaluator": "actor"}  # else there were more than four


class Pool(NamedTuple):
    """Nodes whose hosts are alike."""

    name: str  # one of POOL_NAMES
    kind: str  # replay, learner or actor: what its hosts are made for
    labels: tuple[str, ...]  # of its nodes, <group>/<index in the group>
    nodes: tuple[Any, ...]


def pools(program: lp.Program) -> list[Pool]:
    """A program's nodes by the hosts they need; the first pool has one node, as Vertex AI wants it.

    That is a kind that has a single node; where there is none, the first kind gives one away.
    """
    kinds: dict[str, list[tuple[str, Any]]] = collections.defaultdict(list)
    for group, nodes in program.groups.items():
        kinds[POOL_OF.get(group, group)] += [
            (f"{group}/{index}", node) for index, node in enumerate(nodes)
        ]
    found = sorted(kinds.items(), key=lambda item: len(item[1]) != 1)
    first_kind, first = found[0]
    if len(first) > 1:
        found = [(first_kind, first[:1]), (first_kind, first[1:]), *found[1:]]
    return [
        Pool(name, kind, *zip(*members, strict=True))
        for name, (kind, members) in zip(POOL_NAMES, found, strict=False)
    ]


def bind(pools: Sequence[Pool]) -> None:
    """Lets every node find the addresses of all others in CLUSTER_SPEC when it runs."""
    for pool in pools:
        for index, node in enumerate(pool.nodes):
            addressing.bind_addresses_vertex_ai(node.addresses, pool.name, index)
            node._initialize_context(lp.LaunchType.VERTEX_AI, launch_config=None)
    for pool in pools:
        for label, node in zip(pool.labels, pool.nodes, strict=True):
            for handle in node.input_handles:
                handle.connect(node, label)


def source_files(root: pathlib.Path = ROOT) -> list[pathlib.Path]:
    """Files that a node needs, relative to the project: modules and tables of scores."""
    found = [
        path.relative_to(root)
        for room in (*ROOMS, "launch")
        for pattern in ("*.py", "*.csv")
        for path in (root / room).rglob(pattern)
    ]
    return sorted([*found, pathlib.Path(_BELOW_ALL)])


def write_pool(folder: pathlib.Path, pool: Pool, settings: Settings) -> None:
    """Writes all that one pool's hosts need: pickled nodes, their names, all sources."""
    folder.mkdir(mode=0o700, parents=True)
    for file in source_files():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, folder / file)
    own_code.copy(settings, folder)
    serialization.serialize_functions(
        str(folder / NODES_FILE), pool.name, [node.function for node in pool.nodes]
    )
    (folder / SECRET_FILE).write_text(credentials.secret())
    for name in (NODES_FILE, SECRET_FILE):
        (folder / name).chmod(0o600)
    facts = dict(kind=pool.kind, run_dir=settings.run_dir, labels=pool.labels)
    (folder / POOL_FILE).write_text(json.dumps(facts) + "\n")


def check_nodes(settings: Settings) -> None:
    """Checks that every node of a run can have a host of its own, and that host its code.

    Raises:
      SettingsError: it cannot.
    """
    if settings.colocate_learners:
        raise SettingsError(
            "--colocate_learners puts several servers into one process, and CLUSTER_SPEC has one "
            "address for each: leave it out where a run is to have hosts of its own."
        )
    own_code.sources(settings)


def check(settings: Settings, folder: pathlib.Path) -> None:
    """Checks that a run can be written as an artefact into a folder.

    Raises:
      SettingsError: it cannot.
    """
    check_nodes(settings)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SettingsError(f"--job={folder} exists already: name a new folder.")


def write(settings: Settings, manifests: checkpoints.Manifests, folder: pathlib.Path) -> list[Pool]:
    """Writes the program of a run, and says how it is started; `check` has been asked.

    Args:
      settings: of the run; a relative run folder is made absolute, since hosts start elsewhere.
      manifests: what it goes on from.
      folder: that is made.

    Returns:
      The pools that were written.
    """
    if not layout.is_bucket(settings.run_dir):
        settings = dataclasses.replace(settings, run_dir=str(settings.path.resolve()))
    found = pools(make_program(settings, manifests))
    bind(found)
    for pool in found:
        write_pool(folder / pool.name, pool, settings)
        print(f"{folder / pool.name}: {', '.join(pool.labels)}")
    count = sum(len(pool.nodes) for pool in found)
    python, place = shlex.quote(sys.executable), shlex.quote(str(folder.resolve()))
    print(
        f"Start {count} processes, --rank=0 to {count - 1}, each in its pool's folder:\n"
        f"  CLUSTER_SPEC=$({python} -m launch.cluster --job={place} --hosts=... "
        f"--rank=...) {python} -m launch.node --job={place}"
    )
    return found
