"""The machine's Java: where it is, whether it is new enough for Spark 4 and Kafka 4 (both need 17), and how to get one.

Java is the one thing that Lagwise needs and `pip` cannot install: the runtimes on PyPI lack the module
`jdk.incubator.vector`, without which Spark does not start.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import MissingRequirement

MINIMUM_JAVA = 17
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
#: The package of each system that has a Java without windows. Debian 13 and Fedora 42 no longer have Java 17.
INSTALL_COMMANDS = {
    "Debian 12, Ubuntu": "apt-get install openjdk-17-jre-headless",
    "Debian 13": "apt-get install openjdk-21-jre-headless",
    "Fedora": "dnf install java-21-openjdk-headless",
    "Alpine": "apk add openjdk21-jre-headless",
    "macOS": 'brew install openjdk@21 && export JAVA_HOME="$(brew --prefix openjdk@21)"',
}
_INSTALL = "; ".join(f"{system}: {command}" for system, command in INSTALL_COMMANDS.items())


def find_java(environment: Mapping[str, str] | None = None) -> Path:
    """The ``java`` of JAVA_HOME, else of PATH.

    Raises MissingRequirement where there is none, where it does not run, or where it is older than 17.
    """
    env = os.environ if environment is None else environment
    home = env.get("JAVA_HOME")
    found = shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java", path=env.get("PATH"))
    if found is None:
        where = f"JAVA_HOME is {home}, but there is no bin/java in it" if home else "there is no java on the PATH"
        raise _missing(where)
    version = _version(found)
    if version < MINIMUM_JAVA:
        raise _missing(f"{found} is Java {version}")
    return Path(found)


def _missing(why: str) -> MissingRequirement:
    """The error in one line: what is missing, what was found, and the command for each system."""
    return MissingRequirement(
        f"Lagwise needs Java {MINIMUM_JAVA} or newer, and {why}. Install one, or set JAVA_HOME to one. {_INSTALL}",
        code=ErrorCode.JAVA_MISSING,
    )


def _version(java: str) -> int:
    """Major version of a ``java`` executable; 1.8 counts as 8."""
    try:
        ran = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _missing(f"{java} does not run ({error})") from error
    match = _VERSION.search(ran.stderr + ran.stdout)
    if match is None:
        raise _missing(f"{java} -version does not print a version (exit {ran.returncode})")
    major = int(match.group(1))
    return int(match.group(2) or 0) if major == 1 else major
