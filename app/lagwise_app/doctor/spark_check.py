"""``python -m lagwise_app.doctor.spark_check``: starts Spark, and does the smallest job.

The doctor runs it as a child process. Prints one JSON object: Spark's version and the seconds taken.
"""

import json
import sys
import time

import pyarrow as pa

from lagwise.config import load_config
from lagwise.platform.errors import LagwiseError
from lagwise.platform.logs import clean, redact_uncaught_errors


def main() -> None:
    """Raises SystemExit with one line if anything fails."""
    began = time.monotonic()
    try:
        from lagwise_spark.start import start_spark
        from lagwise_spark.tasks.running import echo, gathered

        context = start_spark(load_config().analysis.spark, app_name="lagwise-doctor")
        sent = pa.table({"number": range(3)})
        returned = gathered(context, echo, [sent])
    except LagwiseError as error:
        sys.exit(clean(str(error)))
    except Exception as error:  # pyspark and py4j raise many kinds; the doctor shows each as one line
        from lagwise_spark.tasks.error_text import reason_of

        sys.exit(reason_of(error))
    if not returned["echo"].equals(sent):
        sys.exit(f"Spark was sent {sent.to_pylist()} and returned {returned['echo'].to_pylist()}")
    print(json.dumps({"version": f"Spark {context.version}", "seconds": time.monotonic() - began}))  # noqa: T201 (its answer)


if __name__ == "__main__":
    redact_uncaught_errors()
    main()
