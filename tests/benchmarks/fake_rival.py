"""A rival that says it did the work: it speaks the protocol and does nothing else."""

import json
import sys

print(json.dumps({"versions": {"fake": "1.0"}, "first_step_seconds": 2.5}), flush=True)
for line in sys.stdin:
    print(json.dumps({"seconds": 0.5 * int(line)}), flush=True)
