"""Starts Spark's JVM. Its settings go by a file that only this account can read, for they may hold secrets.

pyspark would write every setting on the JVM's command line, which every account of the machine can read.
"""

import logging
import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkContext

from lagwise.platform.private_files import opened

_SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
#: Settings that Spark's launcher itself writes on the command line. ``java`` reads arguments from a file as well.
_ARGUMENTS_OF_JAVA = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")


def start(conf: Mapping[str, str]) -> None:
    """Start this process's JVM with Spark settings, unless it runs already; a context then talks to it.

    The command line names nothing but files, which are gone when this returns. Whatever pyspark raises is let through.
    """
    # At DEBUG py4j logs every message to the JVM: the password of the connection, and settings that are secret.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    if SparkContext._gateway is not None:
        return
    with tempfile.TemporaryDirectory(prefix="lagwise-spark-") as folder:  # mode 0700
        settings = {**conf}
        for key in _ARGUMENTS_OF_JAVA:
            if settings.get(key):
                file = _written(Path(folder) / f"{key}.args", arguments_file(shlex.split(settings[key])))
                settings[key] = f'"@{file}"'
        file = _written(Path(folder) / "spark.properties", properties_file(settings))
        # Spark's own spark-defaults.conf still counts where these settings say nothing.
        with _submit_arguments(f"--properties-file {shlex.quote(str(file))} --load-spark-defaults"):
            SparkContext._ensure_initialized()


def properties_file(settings: Mapping[str, str]) -> str:
    """Settings as Java reads them from a properties file."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in settings.items())


def arguments_file(arguments: list[str]) -> str:
    """Arguments as ``java @FILE`` reads them."""
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f", "\\": "\\\\", '"': '\\"'}
    return "".join('"' + "".join(named.get(c, c) for c in argument) + '"\n' for argument in arguments)


def _escaped(text: str) -> str:
    """Whatever could mean something to the reader of a properties file by its code in UTF-16."""
    units = memoryview(text.encode("utf-16-be")).cast("B")
    codes = [units[at] * 256 + units[at + 1] for at in range(0, len(units), 2)]
    return "".join(chr(c) if c < 128 and (chr(c).isalnum() or chr(c) in "._-/") else f"\\u{c:04x}" for c in codes)


def _written(file: Path, text: str) -> Path:
    with opened(file, "wb") as out:
        out.write(text.encode())
    return file


@contextmanager
def _submit_arguments(ours: str) -> Iterator[None]:
    """Ours before what the environment has, which wins."""
    before = os.environ.get(_SUBMIT_ARGUMENTS)
    os.environ[_SUBMIT_ARGUMENTS] = f"{ours} {before or 'pyspark-shell'}"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SUBMIT_ARGUMENTS]
        else:
            os.environ[_SUBMIT_ARGUMENTS] = before
