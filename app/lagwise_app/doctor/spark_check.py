"""``python -m lagwise_app.doctor.spark_check FOLDER``: starts Spark, and writes and reads a Delta table in the folder.

The doctor runs it as a child process. Prints one JSON object: Spark's version and the seconds taken.
"""

import json
import sys
import time

from lagwise.config import load_config
from lagwise.platform.errors import LagwiseError
from lagwise.platform.logs import clean, redact_uncaught_errors


def main(folder: str) -> None:
    """Raises SystemExit with one line if anything fails."""
    began = time.monotonic()
    try:
        from lagwise_spark.session import start_session

        session = start_session(load_config().analysis.spark, app_name="lagwise-doctor")
        session.range(3).write.format("delta").save(folder)
        read_back = session.read.format("delta").load(folder).count()
    except LagwiseError as error:
        sys.exit(clean(str(error)))
    except Exception as error:  # pyspark and py4j raise many kinds; the doctor shows each as one line
        sys.exit(clean(f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"))
    if read_back != 3:
        sys.exit(f"Spark wrote 3 rows to a Delta table and read back {read_back}")
    print(json.dumps({"version": f"Spark {session.version}", "seconds": time.monotonic() - began}))  # noqa: T201 (its answer)


if __name__ == "__main__":
    redact_uncaught_errors()
    main(sys.argv[1])
