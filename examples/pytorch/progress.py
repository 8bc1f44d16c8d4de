"""What a run tells about itself, see docs/guide/jobs.md."""

import json
import os
import sys


class Progress:
    """Tells on stdout, and in progress.jsonl in the run directory where there is one. Only one rank should have it."""

    def __init__(self, run_dir):
        self.path = os.path.join(run_dir, "progress.jsonl") if run_dir else None

    def tell(self, **fields):
        """Tells how far the run has come: numbers by name."""
        self.say(" ".join(f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
                          for name, value in fields.items()))
        if not self.path:
            return
        try:
            with open(self.path, "a") as f:  # one write: lines stay whole
                f.write(json.dumps(fields) + "\n")
        except OSError as e:  # no reason to end the training
            print(f"train: no more progress.jsonl: {e}", file=sys.stderr)
            self.path = None

    def say(self, text):
        """Says something else on stdout, at once: Python would keep it back until much has come together."""
        print("TRAINYARD", text, flush=True)
