"""All measurements, one after the other: ``make bench`` (``ARGS=--small`` for a smoke test).

    python -m benchmarks [PART …] [--small]

Figures are of this machine, now; ratios against a baseline of the same run are what can be compared.
"""

import argparse
import subprocess
import sys
from pathlib import Path

_REPOSITORY = Path(__file__).resolve().parents[1]

PARTS = {
    "sample": ("benchmarks.sample_kafka", "one sample of a large cluster, read from a real broker and written"),
    "offset-fetch": ("benchmarks.offset_fetch", "committed offsets by our own requests and by librdkafka's"),
    "sample-rocketmq": ("benchmarks.sample_rocketmq", "one sample of a large RocketMQ broker, beside the tool's way"),
    "clusters": ("benchmarks.clusters", "fifty clusters in one collector: sample to lake, failed appends, memory, CPU"),
    "tick": ("benchmarks.tick", "one round of the analysis over that much and an hour of history"),
    "curves": ("benchmarks.curves", "how a round's time grows with history and with group-partitions"),
    "observed": ("benchmarks.observed", "once an hour: what consumers can do, from times with a backlog"),
    "backfill": ("benchmarks.backfill", "the first round over a day that was collected and never analysed"),
    "offsets": ("benchmarks.offsets_topic", "following __consumer_offsets: records a second of CPU"),
    "probe": ("benchmarks.probe", "what the probe costs a message, and how right its T1 and T2 are"),
    "capacity": ("benchmarks.capacity", "whether the advised threads do what was predicted, on real consumers"),
    "causes": ("benchmarks.causes", "whether the cause of a backlog is named: seven faults on real consumers"),
    "cpu-limit": ("benchmarks.cpu_limit", "whether processes under a CPU limit do what the model says (needs root)"),
    "what-if": ("benchmarks.what_if", "whether real consumers' lag goes as the simulator says"),
    "verdicts": (
        "benchmarks.verdicts",
        "whose verdicts are right, on histories of known truth; writes docs/verdicts.md",
    ),
    "forecast": ("benchmarks.forecast", "what topics will be sent: error, coverage of the interval, time"),
    "objective": (
        "benchmarks.objective",
        "what sizing buys in hindsight, by the lag objective and by the highest minute",
    ),
    "forecast-pass": ("benchmarks.forecast_pass", "forecasting some of many topics after a round, inside Spark"),
    "pages": ("benchmarks.pages", "the dashboard's pages over a large lake: first paint, refresh, payload, memory"),
    "pages-wire": ("benchmarks.pages_wire", "bytes that a cold browser fetches for the overview and a group's page"),
    "status": ("benchmarks.status", "`lagwise status` over 5,001 and 10,000 groups: wall time of the whole command"),
    "finding": ("benchmarks.finding", "a keystroke in Find: CPU of its queries over 1,000 groups of 100 partitions"),
    "scaling": ("benchmarks.scaling", "CPU of an answer to an autoscaler, over a lake of 1,000 groups"),
    "metrics": ("benchmarks.metrics", "a scrape of 200,000 series, beside the client library's way"),
    "demo": ("benchmarks.demo", "from the kill of a consumer to the page and the webhook; memory of the product"),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one or more of: {', '.join(PARTS)} (default: all)")
    parser.add_argument("--small", action="store_true", help="small sizes: does it run at all?")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"there is no part called {sorted(unknown)[0]}; there are: {', '.join(PARTS)}")
    failed = 0
    for part in options.parts or PARTS:
        module, what = PARTS[part]
        print(f"\n== {part}: {what}", flush=True)
        command = [sys.executable, "-m", module, *(["--small"] if options.small else [])]
        failed |= subprocess.run(command, cwd=_REPOSITORY, check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
