"""From the kill of a consumer to the webhook, and what the product weighs meanwhile: a run of the demo, measured."""

import argparse
import json
import subprocess
import sys

#: The demo kills the only member of this group so many seconds after the start of its workload.
KILLED, KILLED_AT_SECONDS = "warehouse-sync", 15.0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--small", action="store_true", help="the same: there is no smaller demo")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    command = [sys.executable, "-m", "lagwise", "demo", "--for", "120", "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    report = json.loads(done.stdout)
    group = next(g for g in report["groups"] if g["group"] == KILLED)
    told = [a["at_seconds"] for a in report["alerts"] if a["group"] == KILLED and a["status"] == "stopped"]
    shown = group["first_right_seconds"]
    figures = {
        "all_as_expected": report["ok"],
        "stopped_shown_after_seconds": None if shown is None else round(shown - KILLED_AT_SECONDS, 1),
        "stopped_posted_after_seconds": round(min(told) - KILLED_AT_SECONDS, 1) if told else None,
        "all_right_since_seconds": max((g["right_since_seconds"] or 0) for g in report["groups"]),
        "memory_mib": report["memory_mib"],
    }
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name.replace('_', ' '):30} {value}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
