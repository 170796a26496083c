"""The traces of this folder, and what Spark shows of them: replayed once for all tests of a run."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lagwise.traces.trace import Trace, read_trace
from lagwise_app.replay.verdicts import shown_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lagwise_spark.replay import Shown

FOLDERS = {path.parent.name: path.parent for path in sorted(Path(__file__).parent.glob("*/trace.toml"))}


@cache
def traces() -> tuple[Trace, ...]:
    return tuple(read_trace(folder) for folder in FOLDERS.values())


@cache
def replayed(spark: "SparkSession") -> dict[str, list["Shown"]]:
    """What is shown of each trace, by its name."""
    return {trace.name: shown for trace, shown in zip(traces(), shown_of(spark, traces()), strict=True)}
