"""A rival that says it did the work: it speaks the protocol, or says how fast its run was."""

import json
import sys

settings = json.loads(sys.argv[1])
if "seconds" in settings:
    assert settings["num_environments"] == 4
    print("Something else first.")
    print(json.dumps({"steps_per_second": 123.0, "versions": {"fake": "1.0"}}))
    sys.exit()
print(json.dumps({"versions": {"fake": "1.0"}, "first_step_seconds": 2.5}), flush=True)
for line in sys.stdin:
    print(json.dumps({"seconds": 0.5 * int(line)}), flush=True)
