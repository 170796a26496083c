"""What a keystroke in *Find* costs: each kind is looked for among 1,000 groups of 100 partitions, four members each.

CPU seconds of the whole process per text, over several texts, once each table has been read; the browser, Streamlit and
the answers that are kept for everybody are left out.
"""

import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.common import options_parser, print_figures
from benchmarks.pages_cast import SMALL, Size
from benchmarks.pages_lake import PagesLake
from lagwise.tables.store import Lake
from lagwise_dashboard.queries import finding

#: Of the past there is only what the pages' lake cannot do without: it is not looked at.
_SIZE = Size(minutes=0, hours=0, day_minutes=15)
#: One that much holds, some that little holds, and one that nothing does.
_TEXTS = ("o", "group", "group-0042", "topic-007", "topic-007-4", "10.0.", "no such name")
_KINDS = (finding.groups, finding.topics, finding.partitions, finding.members, finding.hosts)
_LIMIT = 20


def main() -> None:
    """Write the lake, ask, and print the figures."""
    options = options_parser(__doc__, "40 groups of 10 partitions", has_json=True).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(str(Path(folder) / "lake"))
        PagesLake(lake, SMALL if options.small else _SIZE, datetime.now(UTC) - timedelta(seconds=30)).write()
        for kind in _KINDS:
            kind(lake, "x-1", _LIMIT)
        spent: dict[str, list[float]] = {kind.name.rpartition(".")[2]: [] for kind in _KINDS}
        for text in _TEXTS:
            for kind in _KINDS:
                began = time.process_time()
                kind(lake, text, _LIMIT)
                spent[kind.name.rpartition(".")[2]].append(time.process_time() - began)
    per_text = [sum(values) for values in zip(*spent.values(), strict=True)]
    print_figures(
        {
            **{f"{name}_cpu_seconds": round(statistics.median(values), 4) for name, values in spent.items()},
            "text_cpu_seconds": round(statistics.median(per_text), 4),
            "slowest_text_cpu_seconds": round(max(per_text), 4),
        },
        as_json=options.json,
    )


if __name__ == "__main__":
    main()
