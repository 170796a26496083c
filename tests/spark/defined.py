"""What the plain model of the rules says of a lake's raw samples, and whether its statuses say the same."""

import math
from collections.abc import Sequence
from typing import Any

from lagwise.domain.vocabulary import Status
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.raw import COMMITS, GROUPS, MEMBERS, TOPICS, WATERMARKS
from lagwise.tables.store import Lake
from tests.contract.plain_model.evaluation import Moment, evaluate
from tests.contract.plain_model.records import Judged, Pair


def holds_what_is_defined(lake: Lake, moment: Moment, *, ever: Sequence[str] = ()) -> dict[Pair, dict[str, Any]]:
    """Assert that it does, number by number, for every group-partition; the numbers are returned.

    Rounds forget the groups named in ``ever``, which were there long ago: the model forgets nothing.
    """
    raw = {table.name: lake.read(table).to_pylist() for table in (WATERMARKS, COMMITS, GROUPS, MEMBERS, TOPICS)}
    defined = {pair: expected(judged) for pair, judged in evaluate(raw, moment).partitions.items()}
    defined = {pair: numbers for pair, numbers in defined.items() if pair.group not in ever}
    rows = lake.read(PARTITION_STATUS).to_pylist()
    shown = {Pair(r["group"], r["topic"], r["partition"]): {n: r[n] for n in defined_names(defined)} for r in rows}
    assert shown.keys() == defined.keys()
    for pair, numbers in defined.items():
        wrong = {n: (shown[pair][n], value) for n, value in numbers.items() if not same(shown[pair][n], value)}
        assert wrong == {}, pair
    return defined


def expected(judged: Judged) -> dict[str, Any]:
    evidence, verdict = judged.evidence, judged.verdict
    age, is_bound = judged.shown_age
    return {
        "status": str(verdict.status),
        "reason": str(verdict.reason) if verdict.reason else None,
        "reasons": [str(s) for s in verdict.reasons],
        "lag": verdict.lag,
        "lag_seconds": age,
        "lag_seconds_is_lower_bound": is_bound,
        "samples": evidence.samples,
        "rewound_records": evidence.rewound_records if Status.REWOUND in verdict.reasons else None,
        "seconds_to_loss_at_latest": verdict.seconds_to_loss_at_latest,
        "commit_cadence_seconds": evidence.commit_cadence_seconds,
        "lag_slope_per_second": evidence.trend.slope if evidence.trend else None,
        "produce_rate_per_second": evidence.produce_rate_per_second,
        "consume_rate_per_second": verdict.consume_rate_per_second,
        "commits_seen": evidence.commits_seen,
        "seconds_to_catch_up": verdict.seconds_to_catch_up,
        "seconds_to_loss": verdict.seconds_to_loss,
        "seconds_to_loss_is_upper_bound": verdict.seconds_to_loss_is_upper_bound,
        "loss_cause": verdict.loss_cause,
        "records_lost": verdict.records_lost,
    }


def defined_names(defined: dict[Pair, dict[str, Any]]) -> list[str]:
    return list(next(iter(defined.values())))


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
    return bool(one == other)
