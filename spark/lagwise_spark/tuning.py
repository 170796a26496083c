"""Session settings that depend on how much there is to do.

Compiling a query to Java costs about the same for ten rows as for ten million. Below some size it costs more than it
saves by far (19 against 10 CPU seconds a round at 250 group-partitions), above it it is what makes a round fast (8 s
against 12 s at 1,000, 9 s against 34 s at 10,000).
"""

from pyspark.sql import SparkSession

#: From this many group-partitions on, queries are compiled to Java.
LARGE_GROUP_PARTITIONS = 1_000

#: From this many sampled offsets to catch up on, the JVM is started for large work, too.
LARGE_BACKLOG = 2_000_000

_SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}
_LARGE = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}


def tune(session: SparkSession, group_partitions: int, explicit: dict[str, str]) -> None:
    """Set the session up for this many group-partitions, leaving alone what the settings name explicitly."""
    wanted = _SMALL
    if group_partitions >= LARGE_GROUP_PARTITIONS:
        # As many tasks as there are cores, be they of this machine or of a cluster: a question to the JVM.
        wanted = _LARGE | {"spark.sql.shuffle.partitions": str(session.sparkContext.defaultParallelism)}
    for key, value in wanted.items():
        if key not in explicit:
            session.conf.set(key, value)
