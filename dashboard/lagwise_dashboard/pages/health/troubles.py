"""What to do when something is wrong with Lagwise itself."""

from lagwise.domain import humanise
from lagwise.tables.quarantine import CHECK_DISK_FOR, QuarantinedFiles
from lagwise_dashboard import escaping
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.widgets import collection_errors
from lagwise_dashboard.widgets.freshness import Freshness, why

#: So many missing samples, and such a share of those that are there, are worth a word: one or two are a restart.
_MIN_MISSING, _MISSING_SHARE = 3, 0.02


def find(
    fresh: Freshness,
    runs: list[Row],
    errors: list[Row],
    tick_seconds: float | None,
    damaged: list[QuarantinedFiles],
) -> list[str]:
    """Everything that is wrong now, most severe first, each with what to do. Markdown."""
    result: list[str] = []
    for source in fresh.collections:
        name = escaping.markdown(source.name)
        if source.trouble is not None and source.stale:
            result.append(
                f"**{name} cannot be read**{why(source)}. {collection_errors.advice(source.trouble.kind)}"
                + (" Its values are as old as its last good sample." if source.at else "")
            )
        elif source.at is None and source.stale:
            result.append(
                f"**{name} has never been collected.** Check that the collector runs (`lagwise collect` runs it alone "
                "and prints its errors) and can reach the cluster: `lagwise doctor` checks both."
            )
        elif source.stale:
            result.append(
                f"**{name} has not been collected for {humanise.duration(round(source.age_seconds or 0))}**, though a "
                f"sample is due every {humanise.duration(source.interval_seconds)}. Either the collector does not run "
                "or it cannot write: check its log, the free space on the lake's disk, and `lagwise doctor`."
            )
    result += [
        f"**The newest judged sample of {escaping.markdown(s.name)} is {humanise.duration(round(s.age_seconds or 0))} "
        "old**, though the cluster is collected and the analysis finishes its rounds: samples wait on the way. The "
        "processes below show whether any wait for the lake; the log of the analysis shows whether it reads new ones."
        for s in fresh.held_up
    ]
    analysis = fresh.analysis
    if analysis.stale and not fresh.nothing_collected:
        age = "ever" if analysis.at is None else f"for {humanise.duration(round(analysis.age_seconds or 0))}"
        result.append(
            f"**The analysis has not finished a round {age}**, though one is due every "
            f"{humanise.duration(analysis.interval_seconds)}: every verdict is as old as that. Check that it "
            "runs (`lagwise analyze`), and read its log; after a start, Spark takes up to half a minute."
        )
    elif tick_seconds is not None and tick_seconds > analysis.interval_seconds:
        result.append(
            f"**A round of the analysis takes {humanise.duration(tick_seconds)}**, longer than its interval of "
            f"{humanise.duration(analysis.interval_seconds)}. Give it more cores, or raise `analysis.interval_seconds`."
        )
    for run in runs:
        if run["median_seconds"] > run["interval_seconds"]:
            result.append(
                f"**A sample of {escaping.markdown(run['cluster'])} takes "
                f"{humanise.duration(run['median_seconds'])}**, longer than its interval of "
                f"{humanise.duration(run['interval_seconds'])}. Raise `interval_seconds`, or leave groups out."
            )
        elif run["missing"] >= max(_MIN_MISSING, _MISSING_SHARE * run["runs"]):
            result.append(
                f"**{humanise.plural(run['missing'], 'sample')} of {escaping.markdown(run['cluster'])} "
                f"{'is' if run['missing'] == 1 else 'are'} missing in the last hour**: one is due every "
                f"{humanise.duration(run['interval_seconds'])}, and the longest took "
                f"{humanise.duration(run['longest_seconds'])}. While a sample takes longer than its interval, those "
                "that are due meanwhile are skipped; otherwise the collector did not run. Its log says which."
            )
    newest = max((one.newest_at for one in damaged), default=None)
    if newest is not None and fresh.now - newest < CHECK_DISK_FOR:
        files = humanise.plural(sum(one.files for one in damaged), "damaged file")
        result.append(
            f"**{files} quarantined**, the last {humanise.since(newest, fresh.now)} ago; the tables are listed below. "
            "Check the disk, and that nothing else deletes or changes files of the lake."
        )
    if errors:
        counts = [e["count"] for e in errors if e["count"] is not None]
        total = humanise.plural(sum(counts), "error") if len(counts) == len(errors) else "Errors"
        result.append(
            f"**{total} in the last hour**, of {humanise.plural(len(errors), 'kind')}. "
            "What could be read was kept; the rest is shown as unknown. Each kind is listed below with what to do."
        )
    return result
