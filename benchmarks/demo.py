"""From the kill of a consumer to the webhook, and what the product weighs meanwhile: a run of the demo, measured."""

import json
import subprocess
import sys

from benchmarks.common import options_parser, print_figures

#: The demo kills the only member of this group so many seconds after the start of its workload.
KILLED, KILLED_AT_SECONDS = "warehouse-sync", 15.0


def main() -> int:
    options = options_parser(__doc__, "the same: there is no smaller demo", has_json=True).parse_args()
    command = [sys.executable, "-m", "lagwise", "demo", "--for", "120", "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    report = json.loads(done.stdout)
    group = next(g for g in report["groups"] if g["group"] == KILLED)
    notified = [a["at_seconds"] for a in report["alerts"] if a["group"] == KILLED and a["status"] == "stopped"]
    shown = group["first_right_seconds"]
    figures = {
        "all_as_expected": report["ok"],
        "stopped_shown_after_seconds": None if shown is None else round(shown - KILLED_AT_SECONDS, 1),
        "stopped_posted_after_seconds": round(min(notified) - KILLED_AT_SECONDS, 1) if notified else None,
        "all_right_since_seconds": max((g["right_since_seconds"] or 0) for g in report["groups"]),
        "memory_mib": report["memory_mib"],
    }
    print_figures(figures, as_json=options.json)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
