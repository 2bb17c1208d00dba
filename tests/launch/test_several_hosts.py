"""A run on hosts of their own learns, whoever is late, cut off, dead, or without power."""

import json
import pathlib
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from tests.launch.clusters import Cluster
from tests.launch.namespaces import NEEDED, Network
from tests.patience import PATIENCE

pytestmark = [pytest.mark.launchpad, NEEDED]

CATCH = (
    *("--agent=r2d2", "--env=catch", "--num_actors=32", "--actors_per_node=16", "--seed=1"),
    *("--num_replay_shards=2", "--evaluation_minutes=0.1", "--evaluation_episodes=10"),
    "--checkpoint_minutes=0.2",
)
SOLVED = 0.9
SECONDS_TO_LEARN = 3 * PATIENCE  # all of which a busy machine computes, and waits for nothing
CUT_SECONDS = 20.0
AGAIN = "Started again: "
COORDINATOR, LEARNER = "coordinator/0", "learner/0"
ACTORS, REPLAYS = ("actor/0", "actor/1"), ("replay/0", "replay/1")


@pytest.fixture
def network() -> Iterator[Network]:
    with Network() as network:
        yield network


def _returns(cluster: Cluster) -> list[float]:
    """What each evaluation came to so far."""
    return [float(row["episode_return"]) for row in cluster.rows("evaluator")]


def _wait_until_solved(cluster: Cluster) -> None:
    """Waits for an evaluation, of those to come, that has learned."""
    before = len(_returns(cluster))
    cluster.wait_until(
        lambda: max(_returns(cluster)[before:], default=-1.0) >= SOLVED, SECONDS_TO_LEARN
    )


def _episodes_of(cluster: Cluster, actors: range) -> int:
    """Episodes that these actors have ended so far, as far as they are logged."""
    return sum(int(row["actor"]) in actors for row in cluster.rows("episodes"))


def _grows(count: Callable[[], int], by: int = 1) -> Callable[[], bool]:
    """Whether a count exceeds by so much what it is now."""
    before = count()
    return lambda: count() >= before + by


def _cut_for_a_while(cluster: Cluster, *labels: str) -> None:
    """Cuts hosts off, and connects them again; no process may end of that."""
    for label in labels:
        cluster.hosts[label].cut()
    over = time.monotonic() + CUT_SECONDS
    cluster.wait_until(lambda: time.monotonic() > over)
    for label in labels:
        cluster.hosts[label].reconnect()


def _cut_while_it_waits(cluster: Cluster) -> None:
    """The learner waits for items, and has nothing to send, when servers give its streams up."""
    for actor in ACTORS:
        cluster.hosts[actor].signal(signal.SIGSTOP)
    trained = -1
    while trained != cluster.count("learner_steps"):
        trained = cluster.count("learner_steps")
        time.sleep(5.0)  # the coordinator writes each second
    cluster.hosts[LEARNER].cut()
    for replay in REPLAYS:
        cluster.hosts[replay].forget(cluster.hosts[LEARNER].address)
    cluster.hosts[LEARNER].reconnect()
    for actor in ACTORS:
        cluster.hosts[actor].signal(signal.SIGCONT)


def _kill_and_start_again(cluster: Cluster, label: str) -> str:
    """Ends a node that remembers, once there is a checkpoint to go on from; returns what it says.

    All others go on meanwhile, and with it.
    """
    cluster.wait_until(lambda: bool(cluster.manifest().get("replay")))
    cluster.kill(label)
    acted = cluster.count("actor_steps")
    cluster.start(label)
    cluster.wait_until(lambda: AGAIN in cluster.printed(label))
    cluster.wait_until(lambda: cluster.count("actor_steps") > acted)
    cluster.wait_until(_grows(lambda: cluster.count("learner_steps"), by=10))
    return cluster.printed(label).partition(AGAIN)[2].partition("\n")[0]


def test_catch_is_learned_by_hosts_that_come_late_are_cut_off_lose_power_and_die(
    network: Network, tmp_path: pathlib.Path
) -> None:
    cluster = Cluster(network, tmp_path, *CATCH)
    events: list[tuple[float, str]] = []

    def note(event: str) -> None:
        walltime = cluster.progress().get("counts", {}).get("walltime", 0.0)
        events.append((walltime, event))
        (tmp_path / "run" / "events.json").write_text(json.dumps(events))

    assert sorted(cluster.labels) == sorted(
        [LEARNER, *ACTORS, *REPLAYS, COORDINATOR, "evaluator/0"]
    )
    addresses = {label: host.address for label, host in cluster.hosts.items()}
    assert len(set(addresses.values())) == len(addresses)

    cluster.start(*(label for label in cluster.labels if label != LEARNER))
    late = f"The learner of r2d2 at {addresses[LEARNER]}:2222 has not answered yet"
    cluster.wait_until(lambda: all(late in cluster.printed(actor) for actor in ACTORS))
    note("learner starts")
    cluster.start(LEARNER)
    cluster.wait_until(lambda: cluster.count("learner_steps") > 0)
    callers = [*ACTORS, *REPLAYS, COORDINATOR, "evaluator/0"]
    calling = {addresses[label] for label in callers}
    cluster.wait_until(lambda: calling <= cluster.hosts[LEARNER].peers())

    note("actor 0 cut off")
    _cut_for_a_while(cluster, "actor/0")
    note("connected")
    cluster.wait_until(_grows(lambda: _episodes_of(cluster, range(16)), by=50))
    note("actor 1 loses power")
    cluster.lose("actor/1")
    cluster.hosts["actor/1"].reconnect()
    cluster.start("actor/1")
    note("returns")
    cluster.wait_until(_grows(lambda: _episodes_of(cluster, range(16, 32)), by=50))

    for label, goes_on in (
        (LEARNER, "the learner of r2d2 goes on from update "),
        (REPLAYS[1], "replay goes on from replay/"),
        (COORDINATOR, "the coordinator goes on from "),
    ):
        note(f"{label} dies")
        assert _kill_and_start_again(cluster, label).startswith(goes_on)
        note("is back")

    _wait_until_solved(cluster)
    assert set(cluster.stop().values()) == {0}
    assert (cluster.path / "checkpoints" / "manifest.json").exists()
    assert not (cluster.path / "nodes" / "crash.txt").exists()
    for label in cluster.labels:
        assert "Traceback" not in cluster.printed(label)
    for log, name in (("learner-r2d2", "learner_steps"), ("actor", "actor_steps")):
        counted = [float(row[name]) for row in cluster.rows(log)]
        assert counted
        assert counted == sorted(counted)


@pytest.mark.slow
def test_two_learners_on_two_hosts_end_when_one_does_and_meet_again(
    network: Network, tmp_path: pathlib.Path
) -> None:
    cluster = Cluster(network, tmp_path, *CATCH, "--learners_per_agent=2")
    second = "learner/1"
    cluster.start(*cluster.labels)
    cluster.wait_until(lambda: cluster.hosts[LEARNER].address in cluster.hosts[second].peers())
    cluster.wait_until(lambda: bool(cluster.manifest()))
    cluster.kill(second)
    assert cluster.wait(LEARNER) != 0
    cluster.start(second)  # which waits for the other
    cluster.start(LEARNER)
    cluster.wait_until(_grows(lambda: cluster.count("learner_steps"), by=10))
    _wait_until_solved(cluster)
    assert set(cluster.stop().values()) == {0}


@pytest.mark.slow
def test_any_host_may_be_cut_off_for_a_while(network: Network, tmp_path: pathlib.Path) -> None:
    cluster = Cluster(network, tmp_path, *CATCH, "--evaluation_episodes=0")
    cluster.start(*cluster.labels)
    cluster.wait_until(_grows(lambda: cluster.count("learner_steps"), by=20))
    _cut_while_it_waits(cluster)
    cluster.wait_until(_grows(lambda: cluster.count("learner_steps"), by=50))
    for cut in ([LEARNER], [REPLAYS[1], "coordinator/0"]):
        _cut_for_a_while(cluster, *cut)
        cluster.wait_until(_grows(lambda: cluster.count("learner_steps"), by=50))
        cluster.wait_until(_grows(lambda: cluster.count("actor_steps"), by=2_000))
    assert set(cluster.stop().values()) == {0}
