"""Brings our code to the Python of Spark's executors, which has numpy and pyarrow and nothing of ours."""

import tempfile
import zipfile
from pathlib import Path

from pyspark.sql import SparkSession

import lagwise
import lagwise_spark

#: What tasks import of our packages; each of these imports no more than these.
_SHIPPED = {lagwise: ("domain", "platform", "tables"), lagwise_spark: ("tasks",)}


def ship_code(session: SparkSession) -> None:
    """Send our modules to the executors, now and to those to come."""
    with tempfile.TemporaryDirectory(prefix="lagwise-code-") as folder:
        archive = Path(folder) / "lagwise-code.zip"
        with zipfile.ZipFile(archive, "w") as file:
            for package, rooms in _SHIPPED.items():
                root = Path(package.__path__[0])
                for path in [*root.glob("__init__.py"), *(p for room in rooms for p in root.glob(f"{room}/**/*.py"))]:
                    file.write(path, str(path.relative_to(root.parent)))
        session.sparkContext.addPyFile(str(archive))
