"""The Launchpad graph: one function per kind of node.

        parameters                       parameters
  +----------------------- learner ----------------------+
  v                        |   ^                          v
actors --items--> replay --+   | priorities           evaluator
  |                 ^----------+                          |
  +------ steps, episodes ---> coordinator <--- returns --+
"""

import functools
import os
from typing import Any

import launchpad as lp
from launchpad.nodes.python import local_multi_processing

from launch import checkpoints, nodes, process
from launch.coordinator import Coordinator
from launch.learner_node import LearnerNode
from launch.settings import Settings


def make_program(settings: Settings, manifest: checkpoints.Manifest | None) -> lp.Program:
    """The program of one run, resumed from `manifest` if there is one."""
    program = lp.Program("recurrent_replay")
    replay = add_replay(program, settings, manifest)
    coordinator = add_coordinator(program, settings, manifest, replay)
    learner = add_learner(program, settings, manifest, replay, coordinator)
    add_actors(program, settings, learner, replay, coordinator)
    if settings.evaluation_episodes:
        add_evaluator(program, settings, learner, coordinator)
    return program


def add_replay(
    program: lp.Program, settings: Settings, manifest: checkpoints.Manifest | None
) -> Any:
    """The Reverb server that holds every table."""
    with program.group("replay"):
        return program.add_node(
            lp.ReverbNode(
                functools.partial(nodes.make_tables, settings),
                functools.partial(
                    checkpoints.replay_checkpointer,
                    settings.path / "checkpoints",
                    manifest.replay if manifest else None,
                ),
            )
        )


def add_coordinator(
    program: lp.Program, settings: Settings, manifest: checkpoints.Manifest | None, replay: Any
) -> Any:
    """The node that counts and decides when the run ends."""
    counts = dict(
        actor_steps=manifest.actor_steps if manifest else 0,
        learner_steps=manifest.learner_step if manifest else 0,
        episodes=manifest.episodes if manifest else 0,
        trained_steps=manifest.trained_steps if manifest else 0,
        walltime=manifest.walltime if manifest else 0.0,
    )
    with program.group("coordinator"):
        return program.add_node(
            lp.CourierNode(
                Coordinator,
                settings.run_dir,
                counts,
                max_actor_steps=settings.max_actor_steps,
                max_learner_steps=settings.max_learner_steps,
                learners=[settings.agent],
                replay=replay,
            )
        )


def add_learner(
    program: lp.Program,
    settings: Settings,
    manifest: checkpoints.Manifest | None,
    replay: Any,
    coordinator: Any,
) -> Any:
    """The agent's learner."""
    with program.group("learner"):
        return program.add_node(
            lp.CourierNode(LearnerNode, settings, manifest, replay, coordinator)
        )


def add_actors(
    program: lp.Program, settings: Settings, learner: Any, replay: Any, coordinator: Any
) -> None:
    """`num_actors` environments in processes of `actors_per_node`."""
    with program.group("actor"):
        for start in range(0, settings.num_actors, settings.actors_per_node):
            count = min(settings.actors_per_node, settings.num_actors - start)
            program.add_node(
                lp.CourierNode(
                    nodes.ActorNode, settings, start, count, learner, replay, coordinator
                )
            )


def add_evaluator(program: lp.Program, settings: Settings, learner: Any, coordinator: Any) -> None:
    """The node that measures how good the agent is."""
    with program.group("evaluator"):
        program.add_node(lp.CourierNode(nodes.EvaluatorNode, settings, learner, coordinator))


def local_resources(program: lp.Program) -> dict[str, Any]:
    """How each group's processes start on one machine: only the learner may see an accelerator."""
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "2", process.LAUNCHER: str(os.getpid())}
    alone = {**quiet, "CUDA_VISIBLE_DEVICES": "-1"}
    return {
        group: local_multi_processing.PythonProcess(env=quiet if group == "learner" else alone)
        for group in program.groups
    }
