"""A run of Sample Factory: APPO on Pong with IMPALA's shallow network and an LSTM.

    python -m benchmarks.rivals.sample_factory \\
        '{"seconds": 60, "run_dir": "/tmp/run", "num_environments": 32}'

Its last line of stdout is JSON: the actor steps a second, measured like those of a run here, from
the first progress that it reports on. It needs the packages sample-factory and ale-py 0.10,
the last that has the game by the name that Sample Factory knows.
"""

import json
import logging
import signal
import sys

import ale_py  # noqa: F401  registers the games
import gymnasium
import torch
from sample_factory.train import run_rl
from sample_factory.utils.utils import log
from sf_examples.atari.train_atari import parse_atari_args, register_atari_components

from benchmarks.rivals import protocol

_GAME = "PongNoFrameskip-v4"
_NUM_WORKERS = 2  # for two cores
_ARGUMENTS = [  # the values that are not of the task are its own for Atari
    *("--env=atari_pong", "--experiment=benchmark", f"--num_workers={_NUM_WORKERS}"),
    *("--worker_num_splits=2", "--async_rl=True", "--num_epochs=1", "--num_batches_per_epoch=1"),
    *("--rollout=32", "--batch_size=1024", "--use_rnn=True", "--recurrence=32", "--rnn_type=lstm"),
    *("--rnn_size=256", "--encoder_conv_architecture=convnet_impala"),
    *("--encoder_conv_mlp_layers=256", "--train_for_env_steps=1000000000"),
    "--summaries_use_frameskip=False",  # counts actor steps
]


class Progress(logging.Handler):
    """Reads the number of steps from the line that a run logs every few seconds, and ends the run.

    It ends it as Ctrl-C does, so many seconds after the first report of any steps: the run's own
    limit of seconds is compared with a clock that stands.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(logging.DEBUG)
        self._seconds = seconds
        self._reports: list[tuple[float, int]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Takes a line of the log."""
        if not (isinstance(record.msg, str) and record.msg.startswith("Fps is")):
            return
        assert isinstance(record.args, tuple)
        steps = int(str(record.args[1]))
        if steps:
            self._reports.append((record.created, steps))
            if record.created - self._reports[0][0] >= self._seconds:
                signal.raise_signal(signal.SIGINT)

    def steps_per_second(self) -> float:
        """From the first report of any steps to the last."""
        (started, before), (ended, after) = self._reports[0], self._reports[-1]
        return (after - before) / (ended - started)


def main() -> None:
    settings = json.loads(sys.argv[1])
    gymnasium.make(_GAME).close()  # a worker that cannot make it would be waited for without end
    register_atari_components()
    arguments = [
        f"--device={'gpu' if torch.cuda.is_available() else 'cpu'}",
        f"--train_dir={settings['run_dir']}",
        f"--num_envs_per_worker={settings['num_environments'] // _NUM_WORKERS}",
    ]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a job of the background
    progress = Progress(settings["seconds"])
    log.addHandler(progress)
    run_rl(parse_atari_args([*_ARGUMENTS, *arguments]))
    result = {
        "steps_per_second": progress.steps_per_second(),
        "versions": protocol.versions(("sample-factory", "torch", "ale-py")),
    }
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
