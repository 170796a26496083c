"""What the plain model of the rules shows of a trace, in the shape in which it is shown."""

from collections.abc import Mapping, Sequence
from typing import Any

from lagwise.domain.group_record import number_columns
from lagwise.domain.groups import GroupVerdict
from lagwise.domain.lag_forecast import Forecast
from lagwise.domain.vocabulary import Status
from lagwise.traces.trace import Trace, moment, sample_id
from lagwise_app.replay.shown import NUMBERS, Shown
from tests.contract.plain_model.evaluation import Moment, evaluate
from tests.contract.plain_model.records import Evaluation, Judged, Pair, Policy


def evaluation_at(
    trace: Trace, time_s: float, events: Sequence[Mapping[str, Any]], before: Evaluation | None = None
) -> Evaluation:
    """The verdicts at a time of a trace; ``before`` are those of the moment before."""
    index = trace.sample_at(time_s)
    policy = Policy(trace.sample_interval_s, trace.lag_objective_s, trace.risk_horizon_s)
    at = Moment(
        sample_id(index), moment(trace.sample_times[index]), policy, trace.offsets_retention_s, trace.lag_objectives_s
    )
    return evaluate({**trace.rows, "events": events}, at, before)


def shown_by_oracle(
    trace: Trace, events: Sequence[Mapping[str, Any]], times: Sequence[float] | None = None
) -> list[Shown]:
    """Everything shown at some of the evaluation times (by default at all), in the order of the replay; ``events`` are
    those that verdicts go by."""
    shown: list[Shown] = []
    evaluation: Evaluation | None = None
    for time_s in trace.evaluation_times if times is None else times:
        evaluation = evaluation_at(trace, time_s, events, evaluation)
        shown += [_partition(trace, time_s, pair, judged) for pair, judged in sorted(evaluation.partitions.items())]
        shown += [_group(trace, time_s, group, verdict) for group, verdict in sorted(evaluation.groups.items())]
    return shown


def _partition(trace: Trace, time_s: float, pair: Pair, judged: Judged) -> Shown:
    verdict, evidence = judged.verdict, judged.evidence
    lag_seconds, is_bound = judged.shown_age
    numbers = {
        "lag": verdict.lag,
        "lag_seconds": lag_seconds,
        "lag_seconds_is_lower_bound": is_bound,
        "produce_rate_per_second": evidence.produce_rate_per_second,
        "consume_rate_per_second": verdict.consume_rate_per_second,
        "seconds_to_catch_up": verdict.seconds_to_catch_up,
        "seconds_to_loss": verdict.seconds_to_loss,
        "records_lost": verdict.records_lost,
    }
    return Shown(
        trace.name,
        time_s,
        *pair,
        str(verdict.status),
        str(verdict.reason) if verdict.reason else None,
        tuple(str(s) for s in verdict.reasons),
        numbers,
        loss_cause=str(verdict.loss_cause) if verdict.loss_cause else None,
        forecasts=_ends("catch_up", verdict.to_catch_up) | _ends("breach", verdict.to_breach),
        lost=verdict.lost,
    )


def _ends(what: str, forecast: Forecast | None) -> dict[str, float | None]:
    name = f"seconds_to_{what}"
    if forecast is None:
        return dict.fromkeys((name, f"{name}_low", f"{name}_high"))
    return {name: forecast.seconds, f"{name}_low": forecast.low, f"{name}_high": forecast.high}


def _group(trace: Trace, time_s: float, group: str, verdict: GroupVerdict) -> Shown:
    held = sorted(
        (s for s, n in verdict.partitions_by_status.items() if n and s is not Status.GHOST), key=lambda s: s.rank
    )
    numbers = number_columns(verdict.numbers)
    return Shown(
        trace.name,
        time_s,
        group,
        None,
        None,
        str(verdict.status),
        str(verdict.reason) if verdict.reason else None,
        tuple(str(s) for s in held) or (str(verdict.status),),
        {name: numbers[name] for name in NUMBERS},
        verdict.sentence,
        numbers["loss_cause"],
        {"to_catch_up": verdict.to_catch_up, "to_breach": verdict.to_breach},
        verdict.lost,
    )
