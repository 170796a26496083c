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
from lagwise.platform.java import find_java


@dataclass(frozen=True, slots=True)
class SystemRelease:
    """A system's release on Maven Central; ``megabytes`` is about what its largest artifact brings along."""

    name: str
    organisation: str
    version: str
    megabytes: int

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


KAFKA = SystemRelease("Kafka", "org.apache.kafka", "4.3.0", 50)
#: The newest of which all artifacts are on Maven Central.
ROCKETMQ = SystemRelease("RocketMQ", "org.apache.rocketmq", "5.5.0", 91)


@dataclass(frozen=True, slots=True)
class Artifact:
    """An artifact, with its dependencies where it is ``transitive``."""

    release: SystemRelease
    name: str
    #: How many files Ivy retrieves: a released version's dependencies never change.
    file_count: int
    transitive: bool = True


_KAFKA_BROKER = Artifact(KAFKA, "kafka_2.13", 47)
_ROCKETMQ = (
    Artifact(ROCKETMQ, "rocketmq-broker", 127),
    # What a name server and the tools need besides a broker's jars.
    Artifact(ROCKETMQ, "rocketmq-namesrv", 2, transitive=False),
    Artifact(ROCKETMQ, "rocketmq-controller", 2, transitive=False),
    Artifact(ROCKETMQ, "rocketmq-tools", 2, transitive=False),
)
_RESOLVE_SECONDS = 600.0
_LOCK_SECONDS = 900.0
_MARKER = "complete.json"
#: slf4j's bridge to log4j, out of pyspark (the same log4j release as Kafka's): Kafka's jars alone would log nothing.
_LOGGING_JARS = ("slf4j-api-2*.jar", "log4j-slf4j2-impl-*.jar", "log4j-api-*.jar", "log4j-core-*.jar")

Progress = Callable[[str], None]


def cache_folder(release: SystemRelease) -> Path:
    """Where the jars are kept: ``$XDG_CACHE_HOME/lagwise/kafka-VERSION``, by default below ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "lagwise" / f"{release.name.lower()}-{release.version}"


def broker_classpath(progress: Progress | None = None) -> str:
    """Java classpath of a Kafka broker that logs through log4j. Resolves what the cache lacks.

    Raises MissingRequirement where Java or pyspark is missing, or where the jars can neither be found nor fetched.
    """
    bridge = [jar for pattern in _LOGGING_JARS for jar in sorted(_pyspark_jars().glob(pattern))]
    replaced = ("slf4j-api", "log4j-api", "log4j-core")
    jars = resolved(_KAFKA_BROKER, progress)
    rest = [jar for jar in jars if not (bridge and any(name in jar.name for name in replaced))]
    return os.pathsep.join(str(jar) for jar in [*bridge, *rest])


def rocketmq_classpath(progress: Progress | None = None) -> str:
    """Classpath of RocketMQ's name server, broker, clients and tools. Raises as Kafka's does."""
    return os.pathsep.join(str(jar) for artifact in _ROCKETMQ for jar in resolved(artifact, progress))


def _pyspark_jars() -> Path:
    """The folder of jars inside pyspark, found without importing pyspark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise MissingRequirement("pyspark is missing, and jars are fetched by the Ivy in it: pip install lagwise[all]")
    return Path(spec.origin).parent / "jars"


def resolved(artifact: Artifact, progress: Progress | None = None, cache: Path | None = None) -> list[Path]:
    """The jars of an artifact, without sources and javadoc; fetched where the cache does not hold all of them."""
    release, cache = artifact.release, cache or cache_folder(artifact.release)
    folder = cache / artifact.name
    jars = _complete(folder)
    if jars is None:
        try:
            cache.mkdir(parents=True, exist_ok=True)
            with _locked(cache / f"{artifact.name}.lock", release, progress):
                jars = _complete(folder) or _fetch(cache, artifact, progress)
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


def _fetch(cache: Path, artifact: Artifact, progress: Progress | None) -> list[Path]:
    """Resolve into a folder next to the final one, check every archive, and only then put it in place."""
    prefix = f"{artifact.name}.part-"
    for left_over in cache.glob(f"{prefix}*"):  # of a process that was killed; the lock is ours
        shutil.rmtree(left_over, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=prefix, dir=cache))
    try:
        _run_ivy(work, cache / "ivy", artifact, progress or (lambda line: None))
        jars = sorted((work / "jars").glob("*.jar"))
        broken = [jar.name for jar in jars if not zipfile.is_zipfile(jar)]
        if broken or not jars:
            # Whatever Ivy kept of a broken download must not be served again.
            shutil.rmtree(cache / "ivy", ignore_errors=True)
            what = f"{broken[0]} arrived damaged" if broken else "no jar arrived"
            raise MissingRequirement(f"{artifact.release}'s jars could not be fetched: {what}; try again")
        marker = json.dumps({jar.name: jar.stat().st_size for jar in jars}, indent=1)
        (work / "jars" / _MARKER).write_text(marker, encoding="utf-8")
        folder = cache / artifact.name
        shutil.rmtree(folder, ignore_errors=True)
        (work / "jars").rename(folder)
        shutil.rmtree(cache / "ivy", ignore_errors=True)
        return [folder / jar.name for jar in jars]
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _run_ivy(work: Path, ivy_cache: Path, artifact: Artifact, progress: Progress) -> None:
    """Run Ivy's command line, which knows the public repository by itself, and report its progress."""
    release = artifact.release
    ivy = sorted(_pyspark_jars().glob("ivy-*.jar"))
    if not ivy:
        raise MissingRequirement(f"there is no ivy-*.jar in {_pyspark_jars()}: reinstall pyspark")
    pattern = work / "jars" / "[organisation].[artifact]-[revision](-[classifier]).[ext]"
    command = [
        str(find_java()), f"-Divy.default.ivy.user.dir={work / 'user'}", "-jar", str(ivy[-1]),
        "-cache", str(ivy_cache), "-dependency", release.organisation, artifact.name, release.version, "-m2compatible",
        *([] if artifact.transitive else ["-notransitive"]), "-retrieve", str(pattern),
    ]  # fmt: skip
    size = release.megabytes if artifact.transitive else 1
    what = f"resolving {release}'s jars (first time only, about {size} MB)"
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
                    progress(f"{what} … {fetched} of {max(artifact.file_count, fetched)}")
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
        f"{release}'s jars could not be fetched: {' '.join(reason.split())}. Check that this machine "
        "reaches Maven Central; behind a proxy set JAVA_TOOL_OPTIONS to '-Dhttps.proxyHost=… -Dhttps.proxyPort=…'; "
        f"offline, copy {cache_folder(release)} from a machine that has it"
    )


@contextlib.contextmanager
def _locked(path: Path, release: SystemRelease, progress: Progress | None) -> Iterator[None]:
    """Hold an exclusive lock on the file; a lock of a process that died is free."""
    deadline = time.monotonic() + _LOCK_SECONDS
    with path.open("w") as handle:
        has_reported = False
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise MissingRequirement(f"another process has been holding {path} for too long: end it") from None
                if progress and not has_reported:
                    progress(f"waiting for another process that is fetching {release.name}'s jars")
                    has_reported = True
                time.sleep(0.2)
        yield
