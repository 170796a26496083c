"""Whose verdicts are right: Lagwise and the rules that people use instead, on traces whose truth is known.

Writes the table of docs/verdicts.md and its picture. ``--traces`` leaves the figures of the healthy days, which take
minutes, as the page has them: enough when a trace has come. ``--small`` does without these days and writes nothing.
"""

import os
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common import options_parser
from benchmarks.verdicts import page
from benchmarks.verdicts.days import DAYS, false_alarms
from benchmarks.verdicts.rules import LAGWISE, baselines, exactly_right, said_by, score_of_lagwise, statuses_of
from benchmarks.verdicts.score import Score, figures_of, known_truth_shares, score_of
from lagwise.traces.trace import Trace, read_trace

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "verdicts.md"
PICTURE = ROOT / "docs" / "images" / "verdicts.svg"


def public_traces() -> list[Trace]:
    """The traces of the repository, in order of their names."""
    return [read_trace(path.parent) for path in sorted((ROOT / "tests" / "traces").glob("*/trace.toml"))]


def scores_of_baselines(traces: Sequence[Trace]) -> dict[str, list[Score]]:
    """The scores of every rule but Lagwise's, trace by trace."""
    scores: dict[str, list[Score]] = {}
    for trace in traces:
        for rule in baselines(trace):
            scores.setdefault(rule.name, []).append(score_of(trace, said_by(rule, trace)))
    return scores


def main() -> int:
    parser = options_parser(__doc__, "without the healthy days; writes nothing")
    parser.add_argument("--traces", action="store_true", help="leave the figures of the healthy days as they are")
    options = parser.parse_args()
    traces = public_traces()
    statuses = [statuses_of(trace) for trace in traces]
    of_lagwise = [score_of_lagwise(trace, its) for trace, its in zip(traces, statuses, strict=True)]
    scores = {LAGWISE: of_lagwise} | scores_of_baselines(traces)
    exact = min(exactly_right(trace, its) for trace, its in zip(traces, statuses, strict=True))
    print(f"Lagwise's exact status, on the worst of {len(traces)} traces: {exact:.1%} of the truth")
    shares = [share for trace in traces for share in known_truth_shares(trace).values()]
    print(
        f"The truth is known for {statistics.mean(shares):.0%} of the groups' time"
        f" and for at least {min(shares):.0%} of each group's"
    )
    failed = 0 if exact == 1 else 1
    text = PAGE.read_text(encoding="utf-8")
    if options.small or options.traces:
        of_days = {name: cells[-page.DAYS :] for name, cells in page.rows_of(text).items()}
    else:
        days = [false_alarms(scores, groups, os.cpu_count() or 1) for groups in DAYS.values()]
        of_days = {name: [f"{day[name]:,}" for day in days] for name in scores}
    made = page.table({name: figures_of(its) for name, its in scores.items()}, of_days)
    print(made)
    if not options.small:
        PAGE.write_text(page.with_table(text, made), encoding="utf-8")
        PICTURE.write_text(page.picture([trace.name for trace in traces], scores), encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
