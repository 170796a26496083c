"""Session settings that depend on how much there is to do.

Compiling a query to Java costs about the same for ten rows as for ten million. Below some size it costs more than it
saves by far (19 against 10 CPU seconds a round at 250 group-partitions), above it it is what makes a round fast (8 s
against 12 s at 1,000, 9 s against 34 s at 10,000).
"""

import math

from pyspark.sql import SparkSession

#: From this many group-partitions on, queries are compiled to Java.
LARGE_GROUP_PARTITIONS = 1_000

#: From this many sampled offsets to catch up on, the JVM is started for large work, too.
LARGE_BACKLOG = 2_000_000

#: From how many samples the minutes are made that one task merges by five when catching up: what its aggregation needs
#: then fits into the memory that the default heap leaves to each of its tasks.
SAMPLES_PER_MERGE = 300_000

_SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}
_LARGE = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}


def tune_for_catching_up(session: SparkSession, samples: int, explicit: dict[str, str]) -> None:
    """Set the session up for making minutes from about this many sampled offsets."""
    least_tasks = math.ceil(samples / SAMPLES_PER_MERGE)
    _set(session, explicit, is_large=samples >= SAMPLES_PER_MERGE, least_tasks=least_tasks)


def tune(session: SparkSession, group_partitions: int, explicit: dict[str, str]) -> None:
    """Set the session up for this many group-partitions, leaving alone what the settings name explicitly."""
    _set(session, explicit, is_large=group_partitions >= LARGE_GROUP_PARTITIONS)


def _set(session: SparkSession, explicit: dict[str, str], *, is_large: bool, least_tasks: int = 1) -> None:
    wanted = _SMALL
    if is_large:
        # As many tasks as there are cores, be they of this machine or of a cluster: a question to the JVM.
        tasks = max(session.sparkContext.defaultParallelism, least_tasks)
        wanted = _LARGE | {"spark.sql.shuffle.partitions": str(tasks)}
    for key, value in wanted.items():
        if key not in explicit:
            session.conf.set(key, value)
