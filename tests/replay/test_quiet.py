"""What Reverb's C++ tells of its doings, and what not."""

import subprocess
import sys

_SCRIPT = """
import reverb
from replay import own_server
if {silent}:
    own_server.silence()
server = reverb.Server([reverb.Table.queue("t", 1)])
client = server.localhost_client()
client.insert([1], {{"t": 1.0}})
print([sample.info.priority for sample in next(client.sample("t"))])
server.stop()
"""


def test_it_tells_nothing_where_it_is_silenced_and_works_as_before() -> None:
    for silent in (True, False):
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT.format(silent=silent)],
            env={"TF_CPP_MIN_LOG_LEVEL": "3"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == "[1.0]\n", done.stderr
        assert ("[reverb/cc" in done.stderr) != silent
