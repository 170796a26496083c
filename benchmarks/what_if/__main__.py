"""Is what-if right? The simulator's scenes really played: real consumers on a real broker, and the lag they had.

Each scene is one question to the simulator (``lagwise.domain.simulation``) and the same thing done: records come at
the scene's rate, consumers handle them at a known cost, nodes are frozen, killed or restarted when the scene says so.
Lag is read as the product reads it, from committed offsets and high watermarks.

    python -m benchmarks.what_if [--scene crash] [--small] [--json]
"""

import json
import os
import sys
from dataclasses import asdict

from benchmarks.common import options_parser, show
from benchmarks.what_if.compare import GOAL, HEADER, compare, line
from benchmarks.what_if.scene import SCENES, play
from lagwise_sandbox.broker import KafkaBroker


def main() -> int:
    parser = options_parser(__doc__, "one scene: does it work at all?", has_json=True)
    parser.add_argument("--scene", action="append", choices=sorted(SCENES), help="only these")
    options = parser.parse_args()
    show(options, f"load {os.getloadavg()[0]:.1f}")
    show(options, HEADER)
    names = options.scene or (["pause"] if options.small else list(SCENES))
    results = {}
    with KafkaBroker(extra={"group.initial.rebalance.delay.ms": 500}) as broker:
        for name in names:
            found = compare(SCENES[name], play(broker.bootstrap, SCENES[name]))
            results[name] = asdict(found) | {"holds": found.holds}
            show(options, line(name, found))
    if options.json:
        print(json.dumps(results, indent=2))
    else:
        show(
            options,
            f"goal: peak lag, peak age, time to drain and the curve within {GOAL:.0%}; load {os.getloadavg()[0]:.1f}",
        )
    return 0 if options.small or all(result["holds"] for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
