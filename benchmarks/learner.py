"""A learner's step: python -m benchmarks.learner --agent=r2d2 [--peer=pytorch] [--with_replay]

The agent's Config is its paper's: `--r2d2.batch_size=16` changes a field. Rates count every row of
an item, burn-in included. The roof over the useful work is what this machine's matrix product does
in the precision of the Config. `--num_clients=32` adds the same step beside actor nodes that fetch
parameters: as often for each update as those of R2D2's paper, whose actors make 260 frames, 65
actor steps, and whose learner makes five updates a second (Section 2.3). `--device=gpu` refuses to
measure a processor, `--device=cpu` leaves a GPU unused.
"""

import contextlib
import itertools
import math
import resource
from collections.abc import Callable

import tensorflow as tf
from absl import flags

from agents.batches import Fetched
from agents.contract import Update
from agents.learner import Learner
from agents.networks.network import RecurrentNetwork
from benchmarks import flops, measuring
from benchmarks.local_replay import Clients, LocalReplay
from benchmarks.measuring import Contestant, Report, figure, ratios, single, timed
from benchmarks.rival import Rival
from benchmarks.scale import PAPER
from benchmarks.subject import Subject, synthetic_batch
from replay.priority_updater import PriorityUpdater
from run_folder import catalogue

_REPLAYED_ITEMS = 2_000
_RIVALS = {name for entry in catalogue.AGENTS.values() for name in entry.rivals}
_SIDE, _SIDE_ON_GPU = 2048, 8192  # a GPU takes longer to be told of the smaller one than to make it

_PEER = flags.DEFINE_enum("peer", None, sorted(_RIVALS), "Whose step alternates with ours.")
_PEER_BFLOAT16 = flags.DEFINE_boolean("peer_bfloat16", False, "PyTorch's autocast to bfloat16.")
_DEVICE = measuring.define_device()
_WITH_REPLAY = flags.DEFINE_boolean(
    "with_replay", False, "Measures the step fed by a replay server too, priorities written back."
)
_NUM_CLIENTS = flags.DEFINE_integer(
    "num_clients",
    0,
    "Actor nodes; measures the step while they fetch parameters too.",
    lower_bound=0,
)
_STEPS_PER_UPDATE = PAPER.steps_per_second * PAPER.update_seconds  # of an actor


def main(measured: Subject, report: Report) -> None:
    report.settings["roof"] = _roof(measured)
    contestants: dict[str, Contestant] = {}
    with contextlib.ExitStack() as stack:
        if _PEER.value:
            contestants["peer"] = _rival(measured, report, stack)
        update = measured.agent.make_update(measured.spec)
        if _WITH_REPLAY.value:
            contestants["learner_with_replay"] = _replayed(measured, update, stack)
        if _NUM_CLIENTS.value:
            contestants["learner_with_clients"] = _fetched_from(measured, update, stack)
        batch = synthetic_batch(measured)
        step = timed(lambda: update(batch)[1]["loss"].numpy())
        report.add("first_step", single(step(1), "s"))
        contestants["learner"] = Contestant(step, measured.frames)
        rates = measuring.alternate({**contestants, **_products()})
    _report_rates(report, rates, contestants)
    parameters = sum(math.prod(variable.shape) for variable in update.network.trainable_variables)
    report.add("parameters", single(parameters / 1e6, "million"))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in kB, of this process alone
    report.add("peak_memory", single(memory / 1e6, "GB"))
    _report_work(report, rates, measured, update)


def _roof(measured: Subject) -> str:
    """The product of matrices that an update is held against."""
    return f"matmul_{getattr(measured.agent.config, 'precision', 'float32')}"


def _products() -> dict[str, Contestant]:
    """Products of two square matrices, in operations per second: the roof over all learners."""
    side = _SIDE_ON_GPU if tf.config.list_logical_devices("GPU") else _SIDE
    return {
        f"matmul_{dtype.name}": Contestant(timed(_product(dtype, side)), 2.0 * side**3)
        for dtype in (tf.float32, tf.bfloat16)
    }


def _product(dtype: tf.DType, side: int) -> Callable[[], object]:
    matrix = tf.cast(tf.random.stateless_normal([side, side], seed=[0, 0]), dtype)

    @tf.function(autograph=False)
    def corner() -> tf.Tensor:
        return tf.matmul(matrix, matrix)[0, 0]

    return lambda: corner().numpy()


def _replayed(measured: Subject, update: Update, stack: contextlib.ExitStack) -> Contestant:
    """The same update in the learner of a run, which samples and writes priorities back."""
    replay = stack.enter_context(LocalReplay(measured))
    replay.fill(_REPLAYED_ITEMS)
    learner = Learner(
        update,
        Fetched(iter(replay.batches())),
        burn_in=replay.table.layout.burn_in,
        priorities=PriorityUpdater(replay.clients(), replay.table.name),
    )
    return Contestant(timed(learner.step), measured.frames)


def _fetched_from(measured: Subject, update: Update, stack: contextlib.ExitStack) -> Contestant:
    """The same update in the learner of a run, from which clients fetch the parameters."""
    learner = Learner(update, Fetched(itertools.repeat(synthetic_batch(measured))))
    clients = stack.enter_context(Clients(learner.get_variables, _NUM_CLIENTS.value))
    periods = _STEPS_PER_UPDATE / measured.agent.variable_update_period
    due = 0.0

    def step() -> None:
        nonlocal due
        due += _NUM_CLIENTS.value * periods
        clients.begin(int(due))
        due -= int(due)
        learner.step()

    def run(steps: int) -> float:
        step()  # its clients are served during the next one, as in a run
        seconds = timed(step)(steps)
        clients.wait()
        return seconds

    return Contestant(run, measured.frames)


def _rival(measured: Subject, report: Report, stack: contextlib.ExitStack) -> Contestant:
    known, peer = measured.entry.rivals, _PEER.value or ""
    module = known.get(peer)
    if module is None:
        measuring.fail(
            f"--peer={peer} has no step that does the work of --agent="
            f"{measured.agent.name}'s; the peers of that agent: {', '.join(known) or 'none'}."
        )
    settings = measuring.of_rival(measured, peer) | {
        "bfloat16": _PEER_BFLOAT16.value,
        "keeps_memory": peer in ("pytorch_tuned", "pytorch_compiled"),
        "compiled": peer == "pytorch_compiled",
    }
    rival = stack.enter_context(Rival(module, settings))
    report.add("peer_first_step", single(rival.first_step_seconds, "s"))
    report.add_versions(rival.versions)
    return Contestant(rival.run, measured.frames)


def _report_rates(
    report: Report, rates: dict[str, list[float]], contestants: dict[str, Contestant]
) -> None:
    for name in contestants:
        report.add(name, figure(rates[name], "frames/s"))
    if "peer" in rates:
        report.add("learner_to_peer", figure(ratios(rates["learner"], rates["peer"]), "x"))
    for load in ("replay", "clients"):
        if slower := rates.get(f"learner_with_{load}"):
            lost = [100 - kept for kept in ratios(slower, rates["learner"], 100)]
            report.add(f"lost_to_{load}", figure(lost, "%"))


def _report_work(
    report: Report, rates: dict[str, list[float]], measured: Subject, update: Update
) -> None:
    """Useful operations a second, and their share of the roof."""
    network, config = update.network, measured.agent.config
    counted = measured.entry.networks > 0 and ":" not in config.torso + measured.core
    if not (counted and isinstance(network, RecurrentNetwork)):
        return  # of somebody's own, nobody can say what is useful
    work = flops.per_update(measured.agent, network, measured.spec, measured.entry.networks)
    useful = [rate * work / measured.frames for rate in rates["learner"]]
    report.add("useful_work_of_an_update", single(work / 1e9, "GFLOP"))
    report.add("useful_work", figure([rate / 1e9 for rate in useful], "GFLOP/s"))
    for name in ("matmul_float32", "matmul_bfloat16"):
        report.add(name, figure([rate / 1e9 for rate in rates[name]], "GFLOP/s"))
    report.add("share_of_roof", figure(ratios(useful, rates[_roof(measured)], 100), "%"))


if __name__ == "__main__":
    measuring.run(
        main,
        ["device", "with_replay", "num_clients"],
        ["peer", "peer_bfloat16"],
        before=lambda: measuring.use_device(_DEVICE.value),
    )
