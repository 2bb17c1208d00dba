"""The Launchpad graph: one function per kind of node.

        parameters                       parameters
  +----------------------- learner ----------------------+
  v                        |   ^                          v
actors --items--> replay --+   | priorities           evaluator
  |                 ^----------+                          |
  +------ steps, episodes ---> coordinator <--- returns --+
"""

import functools
import importlib
from collections.abc import Callable
from typing import Any

import launchpad as lp
import reverb

from launch.graph import process
from launch.graph.actor_node import ActorNode
from launch.graph.coordinator import Coordinator
from launch.graph.evaluator_node import EvaluatorNode
from launch.graph.learner_node import LearnerNode
from launch.graph.learning import FurtherLearner
from launch.graph.rejoining import Origin
from launch.graph.servers import ServerNode
from run_folder import building, checkpoints, layout, mirrors, replay_files, saver
from run_folder.layout import CHECKPOINTS
from run_folder.settings import Settings

_DEMONSTRATIONS = "launch.graph.demonstrations"  # which most runs do without
NO_GPU = "-1"  # CUDA_VISIBLE_DEVICES of processes that see none


def make_program(settings: Settings, manifests: checkpoints.Manifests) -> lp.Program:
    """The program of one run, resumed from `manifests` if there are any."""
    program = lp.Program("recurrent_replay")
    origin = Origin.of(settings, manifests)
    replays = add_replay(program, settings, origin)
    recorded: list[Any] = []  # the server of demonstrations
    if settings.demonstrations:
        recorded = [importlib.import_module(_DEMONSTRATIONS).add_server(program, settings)]
    learned_from = recorded if settings.is_offline else replays
    coordinator = add_coordinator(program, settings, manifests, learned_from)
    learners = add_learners(program, settings, origin, replays, coordinator, recorded)
    add_actors(program, settings, learners, replays, coordinator)
    for server in recorded:
        add_players = importlib.import_module(_DEMONSTRATIONS).add_players
        add_players(program, settings, learners, server, coordinator)
    if settings.evaluation_episodes:
        with program.group("evaluator"):
            for name, learner in learners.items():
                node = lp.PyClassNode(EvaluatorNode, settings, name, learner, coordinator)
                program.add_node(node)
    return program


def add_replay(program: lp.Program, settings: Settings, origin: Origin) -> list[Any]:
    """The Reverb servers; each holds its shard of every table."""
    with program.group("replay"):
        return [
            program.add_node(
                lp.ReverbNode(
                    functools.partial(make_tables, settings, shard),
                    functools.partial(replay_checkpointer, settings, origin, shard),
                )
            )
            for shard in range(settings.num_replay_shards)
        ]


def make_tables(settings: Settings, shard: int) -> list[reverb.Table]:
    """The tables of a replay node, in whose process this is called."""
    process.enter(settings.run_dir, f"replay {shard}")
    process.stay_busy()  # Reverb's own threads work; the main one only waits for the end
    return building.tables_of_shard(settings, shard)


def replay_checkpointer(
    settings: Settings, origin: Origin, shard: int
) -> reverb.checkpointers.CheckpointerBase:
    """Where a replay node writes its checkpoints, and the one it begins with, if there is one."""
    mirror = mirrors.of(settings.run_dir)
    replay = origin.of_replay(settings)
    if replay is not None:
        mirror.fetch(f"{CHECKPOINTS}/{replay}/{shard}/*")
    checkpointer = saver.replay_checkpointer(settings.folder.checkpoints, replay, shard)
    if layout.is_bucket(settings.run_dir):
        staging = f"{CHECKPOINTS}/staging/{shard}"
        replay_files.keep_shipping(mirror.path / staging, f"{mirror.root}/{staging}")
    return checkpointer


def add_coordinator(
    program: lp.Program, settings: Settings, manifests: checkpoints.Manifests, replays: list[Any]
) -> Any:
    """The node that counts and decides when the run ends."""
    learned = dict.fromkeys((settings.paced_by, *settings.agents), (0, 0))
    learned |= {
        name: (manifest.learner_step, manifest.trained_steps)
        for name, manifest in manifests.items()
    }
    with program.group("coordinator"):
        return program.add_node(
            ServerNode(
                "The coordinator",
                Coordinator,
                settings.run_dir,
                settings.tasks,
                0 if settings.is_offline else settings.num_actors,
                checkpoints.counts(manifests),
                learned,
                limits=settings.limits,
                until_return=settings.until_return,
                until_evaluations=settings.until_evaluations,
                replays=replays,
            )
        )


def add_learners(
    program: lp.Program,
    settings: Settings,
    origin: Origin,
    replays: list[Any],
    coordinator: Any,
    recorded: list[Any],
) -> dict[str, Any]:
    """Each agent's learner, by name: a process for each, or one for all.

    Of several learners of an agent, that of rank 0 is its learner to all others.
    """
    learners = {
        name: ServerNode(
            f"The learner of {name}",
            *(LearnerNode, settings, name, origin, replays, coordinator, recorded),
        )
        for name in settings.agents
    }
    with program.group("learner"):
        if settings.colocate_learners:
            handles = {name: node.create_handle() for name, node in learners.items()}
            program.add_node(lp.MultiThreadingColocation(list(learners.values())))
            return handles
        handles = {name: program.add_node(node) for name, node in learners.items()}
        for name in settings.agents:
            for rank in range(1, settings.learners_per_agent):
                node = lp.PyClassNode(FurtherLearner, settings, name, rank, replays, coordinator)
                program.add_node(node)
        return handles


def add_actors(
    program: lp.Program,
    settings: Settings,
    learners: dict[str, Any],
    replays: list[Any],
    coordinator: Any,
) -> None:
    """`num_actors` environments in processes of `actors_per_node`; each writes to one shard."""
    with program.group("actor"):
        for index, crew in enumerate(settings.crews()):
            learner, replay = learners[crew.agent], replays[index % len(replays)]
            node = lp.PyClassNode(ActorNode, settings, crew, learner, replay, coordinator)
            program.add_node(node)


def local_nodes(program: lp.Program) -> dict[str, Callable[[], Any]]:
    """The functions that are a program's nodes on this machine, by label, <group>/<index>.

    This is the first half of Launchpad's own `local_mp` launch, which has no name there.
    """
    nodes = program.get_all_nodes()
    for node in nodes:
        node._initialize_context(lp.LaunchType.LOCAL_MULTI_PROCESSING, launch_config=None)
    for group, members in program.groups.items():
        for node in members:
            for handle in node.input_handles:
                handle.connect(node, group)
    for node in nodes:
        node.bind_addresses()
    return {
        f"{group}/{index}": node.function
        for group, members in program.groups.items()
        for index, node in enumerate(members)
    }


def environment_of(group: str, gpu: str = NO_GPU) -> dict[str, str]:
    """Environment variables of a group's processes.

    Learners see every accelerator, others the one that they are given. Only learners keep the
    memory that TensorFlow frees: an actor has no large results, and each of many processes would
    keep 25 MB.

    Args:
      group: of the program.
      gpu: what a process that is no learner sees, as CUDA_VISIBLE_DEVICES names it.
    """
    of_group = (
        {}
        if group == "learner"
        else {"CUDA_VISIBLE_DEVICES": gpu, "TF_CPU_ALLOCATOR_USE_BFC": "false"}
    )
    shared = {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}  # several may share a GPU
    return {"TF_CPP_MIN_LOG_LEVEL": "3"} | shared | of_group
