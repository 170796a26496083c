"""Session settings that depend on how much there is to do.

Compiling a query to Java costs about the same for ten rows as for ten million. Below some size it costs more than it
saves by far (19 against 10 CPU seconds a round at 250 group-partitions), above it it is what makes a round fast.
"""

import os

from pyspark.sql import SparkSession

#: From this many group-partitions on, queries are compiled to Java.
LARGE_GROUP_PARTITIONS = 20_000

_SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}
_LARGE = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
}


def tune(session: SparkSession, group_partitions: int, explicit: dict[str, str]) -> None:
    """Set the session up for this many group-partitions, leaving alone what the settings name explicitly."""
    wanted = _LARGE if group_partitions >= LARGE_GROUP_PARTITIONS else _SMALL
    for key, value in wanted.items():
        if key not in explicit:
            session.conf.set(key, value)
