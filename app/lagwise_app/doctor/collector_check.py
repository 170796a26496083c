"""The doctor's check of who collects each cluster."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lagwise.config import Config
from lagwise_app.doctor.diagnosis import Diagnosis, ok, warning

if TYPE_CHECKING:
    from lagwise.tables.store import Lake

#: Who has just taken over has not written yet.
_TAKING_OVER = timedelta(minutes=1)


def check_collectors(config: Config) -> Iterator[Diagnosis]:
    """Which process collects each cluster, and whether one with another database does, too. Raises LagwiseError."""
    from lagwise.operational.engine import open_engine
    from lagwise.operational.lease import holds
    from lagwise.tables.raw import SAMPLES
    from lagwise.tables.store import Lake
    from lagwise_collectors.lake_delivery.append_samples import lease_mark_of, lease_scope_of

    engine = open_engine(config.database_url)
    try:
        held = holds(engine)
    finally:
        engine.dispose()
    held = {scope: hold for scope, hold in held.items() if not hold.holder.process.has_ended()}
    names = [cluster.name for cluster in config.clusters if lease_scope_of(cluster.name) in held]
    if not names:
        return
    lake = Lake(config.lake_uri, config.lake.resolved_storage_options())
    newest = _newest_samples(lake)
    for name in names:
        check, hold = f"cluster {name}: collector", held[lease_scope_of(name)]
        mark = lake.last_transaction(SAMPLES, lease_mark_of(name))
        is_foreign = mark is not None and mark != hold.hold_id
        if is_foreign and name in newest and newest[name] > hold.holder.since + _TAKING_OVER:
            found = f"{hold.holder} collects it, and so does a process that has another operational database"
            advice = "give both the same `database`, or end one of them; the log of one says which the other is"
            yield warning(check, found, advice)
        else:
            yield ok(check, str(hold.holder))


def _newest_samples(lake: "Lake") -> dict[str, datetime]:
    """When the newest sample of each cluster was written, of those of the last day."""
    from lagwise.tables.raw import SAMPLES

    if lake.open(SAMPLES) is None:
        return {}
    sql = "select cluster, max(written_at) as at from samples group by cluster"
    rows = lake.query(sql, over=[SAMPLES], since=datetime.now(UTC) - timedelta(days=1)).to_pylist()
    return {row["cluster"]: row["at"] for row in rows}
