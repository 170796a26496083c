"""The folder for the demo's lake, logs and database: a temporary one, or one that the user names and keeps."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lagwise.platform.error_codes import ErrorCode, code_of_system
from lagwise.platform.errors import LagwiseError
from lagwise.platform.logs import clean
from lagwise.platform.private_files import make_folder
from lagwise_app.supervisor.state_lock import locked

_MARKER = "lagwise-demo"
_EARLIER = "earlier-"
_LOCK = "lagwise.lock"


@dataclass(slots=True)
class DemoFolder:
    """The folder of a demo. It is removed at the end unless ``keep`` is set by then."""

    path: Path
    keep: bool


@contextmanager
def demo_folder(wanted: Path | None, say: Callable[[str], None]) -> Iterator[DemoFolder]:
    """The folder to use, locked for this process. Data of an earlier demo is moved aside.

    Each demo has a new broker, whose offsets begin at 0, so data of two demos must not mix. Raises LagwiseError where
    the folder is in use, cannot be written, or holds files that no demo wrote.
    """
    folder = DemoFolder(_make(wanted), keep=wanted is not None)
    try:
        with locked(folder.path):
            _claim(folder.path)
            say(
                f"data folder: {folder.path}" + ("" if folder.keep else " (removed at the end if everything went well)")
            )
            yield folder
    except BaseException:
        folder.keep = folder.keep or _has_logs(folder.path)
        raise
    finally:
        if not folder.keep:
            shutil.rmtree(folder.path, ignore_errors=True)
        elif wanted is None:
            say(f"the logs are kept in {folder.path / 'logs'}")


def _make(wanted: Path | None) -> Path:
    try:
        if wanted is None:
            return Path(tempfile.mkdtemp(prefix="lagwise-demo-"))
        make_folder(wanted)
        return wanted.resolve()
    except OSError as error:
        where = clean(str(wanted or tempfile.gettempdir()))
        raise LagwiseError(
            f"the demo cannot write its data to {where}: {error.strerror}",
            code=code_of_system(error, ErrorCode.FILE_NOT_WRITABLE),
        ) from error


def _claim(path: Path) -> None:
    """Mark the folder as a demo's. Move what an earlier demo left in it to a folder of its own."""
    try:
        left = [p for p in path.iterdir() if p.name != _LOCK and not p.name.startswith(_EARLIER)]
        if left and not (path / _MARKER).exists():
            raise LagwiseError(
                f"{clean(str(path))} holds {clean(left[0].name)!r}, which no demo wrote: choose an empty or a new "
                "folder with --data",
                code=ErrorCode.REQUEST_REJECTED,
            )
        if left:
            number = 1 + max(
                (int(n) for p in path.iterdir() if (n := p.name.removeprefix(_EARLIER)).isdigit()), default=0
            )
            earlier = path / f"{_EARLIER}{number}"
            earlier.mkdir()
            for one in left:
                one.rename(earlier / one.name)
        (path / _MARKER).write_text("This folder belongs to `lagwise demo`.\n", encoding="utf-8")
    except OSError as error:
        raise LagwiseError(
            f"the demo cannot write its data to {clean(str(path))}: {error.strerror}",
            code=code_of_system(error, ErrorCode.FILE_NOT_WRITABLE),
        ) from error


def _has_logs(path: Path) -> bool:
    return (path / "logs").is_dir() and any((path / "logs").iterdir())
