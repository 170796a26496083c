"""Brings our code to the Python of Spark's executors, which has numpy and pyarrow and nothing of ours."""

import atexit
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from pyspark import SparkContext

import lagwise
import lagwise_spark

#: What tasks import of our packages; each of these imports no more than these.
_SHIPPED = {lagwise: ("domain", "platform", "tables"), lagwise_spark: ("tasks",)}


#: Ids of the applications whose executors have our code.
_SUPPLIED: set[str] = set()


def ship_code(context: SparkContext) -> None:
    """Send our modules to the executors, now and to those to come."""
    application = context.applicationId
    if application in _SUPPLIED:
        return
    _SUPPLIED.add(application)
    # Executors fetch it when they get their first task: it has to stay for as long as this process.
    folder = Path(tempfile.mkdtemp(prefix="lagwise-code-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = folder / "lagwise-code.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for package, rooms in _SHIPPED.items():
            root = Path(package.__path__[0])
            for path in [*root.glob("__init__.py"), *(p for room in rooms for p in root.glob(f"{room}/**/*.py"))]:
                file.write(path, str(path.relative_to(root.parent)))
    paths = list(sys.path)
    context.addPyFile(str(archive))
    # It puts the archive before everything here, too, where the packages are whole.
    sys.path[:] = paths
