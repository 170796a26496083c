"""Jars of Kafka and RocketMQ: resolved once with the Ivy that ships inside pyspark, kept in a cache folder of Lagwise's
own."""

import contextlib
import fcntl
import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lagwise.platform.die_with_parent import dying_with_parent
from lagwise.platform.errors import MissingRequirement
from lagwise_sandbox.java import find_java

KAFKA_VERSION = "4.3.0"
#: The newest of which all parts are on Maven Central.
ROCKETMQ_VERSION = "5.5.0"


@dataclass(frozen=True, slots=True)
class SystemRelease:
    """A system's release on Maven Central; ``megabytes`` is about what its largest artifact brings along."""

    name: str
    organisation: str
    version: str
    megabytes: int

    @property
    def words(self) -> str:
        return f"{self.name} {self.version}"


KAFKA = SystemRelease("Kafka", "org.apache.kafka", KAFKA_VERSION, 50)
ROCKETMQ = SystemRelease("RocketMQ", "org.apache.rocketmq", ROCKETMQ_VERSION, 91)
#: What Ivy retrieves for ``kafka_2.13`` 4.3.0, transitively: a released version's dependencies never change.
_BROKER_ARTIFACTS = 47
_TOOLS_ARTIFACTS = 3
_ROCKETMQ_BROKER_ARTIFACTS = 127
#: What a name server and the tools need beside a broker's jars.
_ROCKETMQ_OTHERS = ("rocketmq-namesrv", "rocketmq-controller", "rocketmq-tools")
_RESOLVE_SECONDS = 600.0
_LOCK_SECONDS = 900.0
_MARKER = "complete.json"
#: slf4j's bridge to log4j, out of pyspark (the same log4j release as Kafka's): Kafka's jars alone would log nothing.
_LOGGING_JARS = ("slf4j-api-2*.jar", "log4j-slf4j2-impl-*.jar", "log4j-api-*.jar", "log4j-core-*.jar")

Progress = Callable[[str], None]


def cache_folder(release: SystemRelease = KAFKA) -> Path:
    """Where the jars are kept: ``$XDG_CACHE_HOME/lagwise/kafka-VERSION``, by default below ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "lagwise" / f"{release.name.lower()}-{release.version}"


def broker_classpath(cache: Path | None = None, progress: Progress | None = None) -> str:
    """Java classpath of a Kafka broker that logs through log4j. Resolves what the cache lacks.

    Raises MissingRequirement where Java or pyspark is missing, or where the jars can neither be found nor fetched.
    """
    jars = _resolved(cache or cache_folder(), "kafka_2.13", progress, expected=_BROKER_ARTIFACTS)
    bridge = [jar for pattern in _LOGGING_JARS for jar in sorted(_pyspark_jars().glob(pattern))]
    replaced = ("slf4j-api", "log4j-api", "log4j-core")
    rest = [jar for jar in jars if not (bridge and any(name in jar.name for name in replaced))]
    return os.pathsep.join(str(jar) for jar in [*bridge, *rest])


def tools_classpath(cache: Path | None = None, progress: Progress | None = None) -> str:
    """Classpath of Kafka's own command-line tools: the broker's and the ``kafka-tools`` jar. Raises as the broker's."""
    folder = cache or cache_folder()
    tools = _resolved(folder, "kafka-tools", progress, expected=_TOOLS_ARTIFACTS, transitive=False)
    return os.pathsep.join([*(str(jar) for jar in tools), broker_classpath(folder, progress)])


def rocketmq_classpath(cache: Path | None = None, progress: Progress | None = None) -> str:
    """Classpath of RocketMQ's name server, broker, clients and tools. Raises as Kafka's does."""
    folder = cache or cache_folder(ROCKETMQ)
    jars = _resolved(folder, "rocketmq-broker", progress, expected=_ROCKETMQ_BROKER_ARTIFACTS, release=ROCKETMQ)
    for artifact in _ROCKETMQ_OTHERS:
        jars += _resolved(folder, artifact, progress, expected=2, transitive=False, release=ROCKETMQ)
    return os.pathsep.join(str(jar) for jar in jars)


def _pyspark_jars() -> Path:
    """The folder of jars inside pyspark, found without importing pyspark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise MissingRequirement("pyspark is missing, and jars are fetched by the Ivy in it: pip install lagwise[all]")
    return Path(spec.origin).parent / "jars"


def _resolved(
    cache: Path,
    artifact: str,
    progress: Progress | None,
    *,
    expected: int,
    transitive: bool = True,
    release: SystemRelease = KAFKA,
) -> list[Path]:
    """The jars of one artifact, without sources and javadoc; fetched where the cache does not hold all of them."""
    folder = cache / artifact
    jars = _complete(folder)
    if jars is None:
        try:
            cache.mkdir(parents=True, exist_ok=True)
            with _locked(cache / f"{artifact}.lock", release, progress):
                jars = _complete(folder) or _fetch(cache, release, artifact, progress or _silent, expected, transitive)
        except OSError as error:
            raise MissingRequirement(
                f"{release.name}'s jars cannot be kept in {cache}: {error.strerror or error}; free the space or set "
                "XDG_CACHE_HOME to a folder that can be written"
            ) from error
    return [jar for jar in jars if not jar.stem.endswith(("-sources", "-javadoc"))]


def _complete(folder: Path) -> list[Path] | None:
    """The jars in the folder if all that its marker names are there in full, else None."""
    try:
        sizes: dict[str, int] = json.loads((folder / _MARKER).read_text(encoding="utf-8"))
        jars = [folder / name for name in sorted(sizes)]
        return jars if jars and all(jar.stat().st_size == sizes[jar.name] for jar in jars) else None
    except (OSError, ValueError, AttributeError):
        return None


def _fetch(
    cache: Path, release: SystemRelease, artifact: str, progress: Progress, expected: int, transitive: bool
) -> list[Path]:
    """Resolve into a folder beside the final one, check every archive, and only then put it in place."""
    for left_over in cache.glob(f"{artifact}.part-*"):  # of a process that was killed; the lock is ours
        shutil.rmtree(left_over, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=f"{artifact}.part-", dir=cache))
    try:
        _run_ivy(work, cache / "ivy", release, artifact, progress, expected, transitive)
        jars = sorted((work / "jars").glob("*.jar"))
        broken = [jar.name for jar in jars if not zipfile.is_zipfile(jar)]
        if broken or not jars:
            # Whatever Ivy kept of a broken download must not be served again.
            shutil.rmtree(cache / "ivy", ignore_errors=True)
            what = f"{broken[0]} arrived damaged" if broken else "no jar arrived"
            raise MissingRequirement(f"{release.words}'s jars could not be fetched: {what}; try again")
        marker = json.dumps({jar.name: jar.stat().st_size for jar in jars}, indent=1)
        (work / "jars" / _MARKER).write_text(marker, encoding="utf-8")
        folder = cache / artifact
        shutil.rmtree(folder, ignore_errors=True)
        (work / "jars").rename(folder)
        shutil.rmtree(cache / "ivy", ignore_errors=True)
        return [folder / jar.name for jar in jars]
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _run_ivy(
    work: Path,
    ivy_cache: Path,
    release: SystemRelease,
    artifact: str,
    progress: Progress,
    expected: int,
    transitive: bool,
) -> None:
    """Run Ivy's command line (it knows the public repository by itself) and tell the progress from its output."""
    ivy = sorted(_pyspark_jars().glob("ivy-*.jar"))
    if not ivy:
        raise MissingRequirement(f"there is no ivy-*.jar in {_pyspark_jars()}: reinstall pyspark")
    pattern = work / "jars" / "[organisation].[artifact]-[revision](-[classifier]).[ext]"
    command = [
        str(find_java()), f"-Divy.default.ivy.user.dir={work / 'user'}", "-jar", str(ivy[-1]),
        "-cache", str(ivy_cache), "-dependency", release.organisation, artifact, release.version, "-m2compatible",
        *([] if transitive else ["-notransitive"]), "-retrieve", str(pattern),
    ]  # fmt: skip
    size = release.megabytes if transitive else 1
    what = f"resolving {release.words}'s jars (first time only, about {size} MB)"
    lines: list[str] = []
    found = fetched = 0
    progress(f"{what} …")
    with subprocess.Popen(
        dying_with_parent(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as ivy_process:
        too_long = threading.Timer(_RESOLVE_SECONDS, ivy_process.kill)
        too_long.start()
        try:
            for line in ivy_process.stdout or ():
                lines.append(line.rstrip())
                if line.startswith("\tfound "):
                    found += 1
                    if found % 10 == 0:
                        progress(f"{what} … found {found}")
                elif "[SUCCESSFUL ]" in line:
                    fetched += 1
                    progress(f"{what} … {fetched} of {max(expected, fetched)}")
        except BaseException:
            ivy_process.kill()
            raise
        finally:
            too_long.cancel()
    if ivy_process.returncode != 0:
        raise MissingRequirement(_why_it_failed(lines, release))


def _why_it_failed(lines: list[str], release: SystemRelease) -> str:
    errors = [line.strip() for line in lines if re.search(r"error|exception|FAILED|not found", line, re.IGNORECASE)]
    # Ivy's text names the repository's address, which says nothing that a reader can act on.
    reason = re.sub(r"\bat url \S+|\bhttps?://\S+", "", errors[-1]) if errors else (lines or ["no output"])[-1]
    return (
        f"{release.words}'s jars could not be fetched: {' '.join(reason.split())}. Check that this machine "
        "reaches Maven Central; behind a proxy set JAVA_TOOL_OPTIONS to '-Dhttps.proxyHost=… -Dhttps.proxyPort=…'; "
        f"offline, copy {cache_folder(release)} from a machine that has it"
    )


@contextlib.contextmanager
def _locked(path: Path, release: SystemRelease, progress: Progress | None) -> Iterator[None]:
    """Hold an exclusive lock on the file; a lock of a process that died is free."""
    deadline = time.monotonic() + _LOCK_SECONDS
    with path.open("w") as handle:
        told = False
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise MissingRequirement(f"another process has been holding {path} for too long: end it") from None
                if progress and not told:
                    progress(f"waiting for another process that is fetching {release.name}'s jars")
                    told = True
                time.sleep(0.2)
        yield


def _silent(_line: str) -> None:
    """Progress that nobody wants to see."""
