"""Column names and small expressions that several transforms share."""

from pyspark.sql import Column
from pyspark.sql import functions as F

#: What identifies a topic-partition.
TOPIC_PARTITION = ("cluster", "topic", "partition")

_HOUR_MICROS = 3_600_000_000


def hour_of(timestamp: Column) -> Column:
    """Start of the UTC hour a timestamp falls into."""
    micros = F.unix_micros(timestamp)
    return F.timestamp_micros(micros - F.pmod(micros, F.lit(_HOUR_MICROS)))
