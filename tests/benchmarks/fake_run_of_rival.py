"""A run of a rival that says how fast it was."""

import json
import sys

settings = json.loads(sys.argv[1])
assert settings["seconds"] > 0
assert settings["num_environments"] == 4
print("Something else first.")
print(json.dumps({"steps_per_second": 123.0, "versions": {"fake": "1.0"}}))
