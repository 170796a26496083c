"""Writes the past of the made-up cluster into the lake, as its collector would have left it.

``python -m lagwise_app.demo.made_up.past ENDS_AT`` does so in a process of its own, with the settings of the
environment: the rows of five weeks would stay in the memory of the demo.
"""

import sys
from collections.abc import Iterator
from datetime import datetime

import pyarrow as pa

from lagwise.config import RetentionSettings, load_config
from lagwise.tables import ALL_TABLES
from lagwise.tables.raw import COMMITS, EVENTS, GROUPS, MEMBERS
from lagwise.tables.service_times import SERVICE_TIMES
from lagwise.tables.store import Lake
from lagwise_app.demo.made_up.samples import PROBED_MINUTES, TABLES, MadeUpSamples
from lagwise_collectors.probe_service_times import new_measurements
from lagwise_collectors.sample_diff.compare_samples import PreviousSample, compare_samples
from lagwise_sandbox.made_up.offsets import MINUTES_OF_DAY, MINUTES_OF_WEEK, PAST_MINUTES

#: What only verdicts and statistics by the minute are made of: of days whose statistics are no longer kept, the lake
#: would hold none of it.
_OF_THE_LAST_DAYS = frozenset({COMMITS.name, GROUPS.name, MEMBERS.name})


def write_past(lake: Lake, samples: MadeUpSamples, retention: RetentionSettings) -> None:
    """Append all samples of the past, with the events and the service times that their comparison shows. Raises
    LakeError."""
    lake.create(*ALL_TABLES)
    lake.append(EVENTS, pa.concat_tables(_events(samples)))
    lake.append(SERVICE_TIMES, pa.concat_tables(_service_times(samples)))
    kept_from = max(0, PAST_MINUTES - retention.minute_stats_days * MINUTES_OF_DAY)
    for table in TABLES:
        # A week at a time: all of it would take half a gigabyte of memory.
        for first in range(kept_from if table.name in _OF_THE_LAST_DAYS else 0, PAST_MINUTES, MINUTES_OF_WEEK):
            lake.append(table, samples.rows(table, first, min(first + MINUTES_OF_WEEK, PAST_MINUTES)))


def _events(samples: MadeUpSamples) -> Iterator[pa.Table]:
    """The rows of `events`: what happened where the groups were stopped and started."""
    for number in samples.changes():
        before, after = samples.snapshots(number - 1, number + 1)
        yield compare_samples(compare_samples(PreviousSample(), before).latest, after).rows


def _service_times(samples: MadeUpSamples) -> Iterator[pa.Table]:
    """The rows of `service_times`: what the probes wrote into the metadata of the commits."""
    seen = None
    for snapshot in samples.snapshots(PAST_MINUTES - PROBED_MINUTES, PAST_MINUTES):
        measured = new_measurements(seen, snapshot)
        seen = measured.seen
        yield measured.rows


def main() -> None:
    """Write the past that ends at the time given."""
    config = load_config()
    write_past(Lake(config.lake_uri), MadeUpSamples(datetime.fromisoformat(sys.argv[1])), config.lake.retention)


if __name__ == "__main__":
    main()
