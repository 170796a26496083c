"""Where the demo keeps its lake, logs and database: a temporary folder, or one that is kept."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lagwise.platform.errors import LagwiseError
from lagwise.platform.logs import clean
from lagwise.platform.private_files import make_folder
from lagwise_app.supervisor.state_lock import locked

_MARKER = "lagwise-demo"
_EARLIER = "earlier-"
_LOCK = "lagwise.lock"


@dataclass(slots=True)
class Folder:
    """A folder of the demo. A temporary one is removed at the end unless ``keep`` is set by then."""

    path: Path
    keep: bool


@contextmanager
def demo_folder(wanted: Path | None, say: Callable[[str], None]) -> Iterator[Folder]:
    """The folder to use, locked for this process, and free of what an earlier demo left.

    Each demo has a broker of its own, whose offsets begin anew: what an earlier one left is moved aside, not mixed in.
    Raises LagwiseError where the folder is in use, cannot be written, or holds something that is no demo's.
    """
    folder = Folder(_made(wanted), keep=wanted is not None)
    try:
        with locked(folder.path):
            _claim(folder.path)
            say(
                f"keeping everything in {folder.path}"
                + ("" if folder.keep else " (removed at the end if all went well)")
            )
            yield folder
    except BaseException:
        folder.keep = folder.keep or _has_logs(folder.path)
        raise
    finally:
        if not folder.keep:
            shutil.rmtree(folder.path, ignore_errors=True)
        elif wanted is None:
            say(f"the logs are still in {folder.path / 'logs'}")


def _made(wanted: Path | None) -> Path:
    try:
        if wanted is None:
            return Path(tempfile.mkdtemp(prefix="lagwise-demo-"))
        make_folder(wanted)
        return wanted.resolve()
    except OSError as error:
        where = clean(str(wanted or tempfile.gettempdir()))
        raise LagwiseError(f"the demo cannot keep its data in {where}: {error.strerror}") from error


def _claim(path: Path) -> None:
    """Mark the folder as a demo's; move what an earlier demo left in it into a folder of its own."""
    try:
        left = [p for p in path.iterdir() if p.name != _LOCK and not p.name.startswith(_EARLIER)]
        if left and not (path / _MARKER).exists():
            raise LagwiseError(
                f"{clean(str(path))} holds {clean(left[0].name)!r}, which is not the demo's: give --data an empty or a "
                "new folder"
            )
        if left:
            number = 1 + max(
                (int(n) for p in path.iterdir() if (n := p.name.removeprefix(_EARLIER)).isdigit()), default=0
            )
            aside = path / f"{_EARLIER}{number}"
            aside.mkdir()
            for one in left:
                one.rename(aside / one.name)
        (path / _MARKER).write_text("This folder belongs to `lagwise demo`.\n", encoding="utf-8")
    except OSError as error:
        raise LagwiseError(f"the demo cannot keep its data in {clean(str(path))}: {error.strerror}") from error


def _has_logs(path: Path) -> bool:
    return (path / "logs").is_dir() and any((path / "logs").iterdir())
