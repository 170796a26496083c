"""Judged group-partitions, and what those of a group in one status amount to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lagwise.domain.evidence import Evidence, Verdict
from lagwise.domain.loss.records import of_partitions
from lagwise.domain.partition_rollup import PartitionsInStatus, last_catch_up, soonest_breach, total
from lagwise.domain.vocabulary import LossCause, Status, UnknownReason


class Pair(NamedTuple):
    """A group-partition."""

    group: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Judged:
    """One group-partition: what is known of it, what follows, and its owner as "client … on host …"."""

    evidence: Evidence
    verdict: Verdict
    owner: str | None


def parts_of(partitions: Mapping[Pair, Judged]) -> list[PartitionsInStatus]:
    """A group's partitions, summed up by status, reason and cause of the nearest loss."""
    together: dict[tuple[Status, UnknownReason | None, LossCause | None], list[tuple[Pair, Judged]]] = {}
    for pair, judged in sorted(partitions.items()):
        verdict = judged.verdict
        together.setdefault((verdict.status, verdict.reason, verdict.loss_cause), []).append((pair, judged))
    return [_part(*key, those) for key, those in together.items()]


def shown_age(judged: Judged) -> tuple[float | None, bool]:
    """``lag_seconds`` as it is shown, and whether it is a lower bound: not told where the lag is not known."""
    if judged.verdict.lag is None:
        return None, False
    if judged.verdict.lag == 0:
        return 0.0, False
    return judged.evidence.lag_seconds, judged.evidence.lag_seconds_is_lower_bound


def _part(
    status: Status, reason: UnknownReason | None, loss_cause: LossCause | None, those: Sequence[tuple[Pair, Judged]]
) -> PartitionsInStatus:
    evidence = [j.evidence for _, j in those]
    verdicts = [j.verdict for _, j in those]
    ages = [shown_age(j) for _, j in those]
    rewound = [j.evidence for _, j in those if Status.REWOUND in j.verdict.reasons]
    losses = [v for v in verdicts if v.seconds_to_loss is not None]
    nearest = min(losses, key=_loss_order, default=None)
    # The oldest unread record; among equals the lowest partition, then the last topic by name.
    worst = max(those, key=lambda one: (shown_age(one[1])[0] or 0.0, -one[0].partition, one[0].topic))[0]
    return PartitionsInStatus(
        status=status,
        reason=reason,
        partitions=len(those),
        lag=total(v.lag for v in verdicts),
        lag_seconds=max((age for age, _ in ages if age is not None), default=None),
        lag_seconds_is_lower_bound=max((age or 0.0, bound) for age, bound in ages)[1],
        unmoved_seconds=max(e.unmoved_seconds for e in evidence),
        produce_rate_per_second=total(e.produce_rate_per_second for e in evidence),
        consume_rate_per_second=total(v.consume_rate_per_second for v in verdicts),
        commits_seen=sum(e.commits_seen for e in evidence),
        lag_slope_per_second=total(e.trend.slope for e in evidence if e.trend is not None),
        to_catch_up=last_catch_up(v.to_catch_up for v in verdicts),
        to_breach=soonest_breach(v.to_breach for v in verdicts),
        seconds_to_loss=nearest.seconds_to_loss if nearest else None,
        seconds_to_loss_is_upper_bound=bool(nearest and nearest.seconds_to_loss_is_upper_bound),
        seconds_to_loss_at_latest=nearest.seconds_to_loss_at_latest if nearest else None,
        loss_cause=loss_cause,
        records_lost=sum(v.records_lost for v in verdicts),
        rewound_records=sum(e.rewound_records for e in rewound),
        rewound_seconds=min((e.rewound_seconds for e in rewound if e.rewound_seconds is not None), default=None),
        lost=of_partitions(v.lost for v in verdicts),
        worst_topic=worst.topic,
        worst_partition=worst.partition,
        topics=frozenset(pair.topic for pair, _ in those),
        transaction_seconds=max((v.transaction_seconds or 0.0 for v in verdicts), default=0.0) or None,
        held_back_records=sum(
            (e.high_watermark or 0) - (e.last_stable or 0)
            for e, v in zip(evidence, verdicts, strict=True)
            if v.transaction_seconds is not None
        ),
        owners=frozenset(j.owner for _, j in those if j.owner is not None),
        owning_members=len({e.owner for e in evidence} - {None}),
        stopped=sum(Status.STOPPED in v.reasons for v in verdicts),
        stalled=sum(Status.STALLED in v.reasons for v in verdicts),
    )


def _loss_order(verdict: Verdict) -> tuple[float, bool, float]:
    """Of two losses at the same moment the one that will not come sooner comes first, then the one with no limit."""
    at_latest = verdict.seconds_to_loss_at_latest
    return (
        verdict.seconds_to_loss or 0.0,
        verdict.seconds_to_loss_is_upper_bound,
        -1.0 if at_latest is None else at_latest,
    )
