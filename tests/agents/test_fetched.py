"""A script that ends leaves no thread: one to which TensorFlow returned would abort the process."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What is registered first is called last. Nothing here is closed.
SAYS_WHAT_IS_LEFT = """
import atexit, threading, time
from agents import learner
learner._END_SECONDS = 300.0  # on a busy machine a batch may be long on its way
atexit.register(lambda: print("left:", *threading.enumerate()[1:]))
"""
A_BATCH_IS_ON_ITS_WAY = """
from agents.learner import Fetched

def slow():
    while True:
        yield "a batch"
        time.sleep(1.0)

assert Fetched(slow()).next(60.0) == "a batch"
"""
A_LEARNER_WAITS_FOR_REPLAY = """
from environments import dm
from agents.impala.agent import IMPALA, Config
import acme

environment = dm.make("catch")
config = Config(torso="mlp", hidden_sizes=(8,), lstm_size=4, frame_stack=1, length=4, batch_size=2)
agent = IMPALA(acme.make_environment_spec(environment), config)
acme.EnvironmentLoop(environment, agent).run(num_episodes=2)
assert agent.learner.learner_steps
"""


@pytest.mark.parametrize("script", [A_BATCH_IS_ON_ITS_WAY, A_LEARNER_WAITS_FOR_REPLAY])
def test_a_script_ends_with_its_threads(script: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", SAYS_WHAT_IS_LEFT + script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (run.returncode, run.stdout.strip(), run.stderr) == (0, "left:", "")
