"""The machine's Java: where it is and whether it is new enough for Kafka 4 (KIP-1013: brokers need 17)."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from lagwise.platform.errors import MissingRequirement

MINIMUM_JAVA = 17
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
_INSTALL = (
    f"install Java {MINIMUM_JAVA} or newer (Debian and Ubuntu: apt-get install openjdk-17-jre-headless) "
    "or set JAVA_HOME to one"
)


def find_java(environment: Mapping[str, str] | None = None) -> Path:
    """The ``java`` of JAVA_HOME, else of PATH.

    Raises MissingRequirement where there is none, where it does not run, or where it is older than 17.
    """
    env = os.environ if environment is None else environment
    home = env.get("JAVA_HOME")
    found = shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java", path=env.get("PATH"))
    if found is None:
        where = f"JAVA_HOME is {home}, but there is no bin/java in it" if home else "there is no java on the PATH"
        raise MissingRequirement(f"{where}: {_INSTALL}")
    version = _version(found)
    if version < MINIMUM_JAVA:
        raise MissingRequirement(f"{found} is Java {version}: {_INSTALL}")
    return Path(found)


def _version(java: str) -> int:
    """Major version of a ``java`` executable; 1.8 counts as 8."""
    try:
        ran = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingRequirement(f"{java} does not run ({error}): {_INSTALL}") from error
    match = _VERSION.search(ran.stderr + ran.stdout)
    if match is None:
        raise MissingRequirement(f"{java} -version does not print a version (exit {ran.returncode}): {_INSTALL}")
    major = int(match.group(1))
    return int(match.group(2) or 0) if major == 1 else major
