"""Files and folders on a disk or in an object store, by a path with ``*``. Whatever is wrong is a Trouble."""

from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from lagwise.platform.secrets import redact
from lagwise_collectors.external_offsets.model import Trouble

#: More than this is not read: a file of offsets is small, and one that is not is something else.
_LARGEST_FILE = 64 * 1024 * 1024
_MOST_PLACES = 1_000


class OffsetFileSystem:
    """A file system and the pattern of what is wanted in it."""

    def __init__(self, path: str) -> None:
        with _told(path):
            self.files, self._pattern = file_system_of(path)

    def found(self) -> list[pafs.FileInfo]:
        """What is there and matches, by name. Raises Trouble where a path without ``*`` leads nowhere."""
        infos = self.found_or_none()
        if not infos and "*" not in self._pattern:
            raise Trouble("missing", f"there is no {self._pattern}")
        return infos

    def found_or_none(self) -> list[pafs.FileInfo]:
        """What is there and matches, by name; be it nothing."""
        head, *rest = self._pattern.split("/")
        found = [head]
        for segment in rest:
            if "*" not in segment:
                found = [f"{base}/{segment}" for base in found]
                continue
            found = [i.path for base in found for i in self.listed(base or "/") if fnmatchcase(i.base_name, segment)]
            if len(found) > _MOST_PLACES:
                raise Trouble("malformed", f"{self._pattern} matches more than {_MOST_PLACES} places")
        with _told(self._pattern):
            infos = [info for info in self.files.get_file_info(found) if info.type != pafs.FileType.NotFound]
        return sorted(infos, key=lambda info: info.path)

    def listed(self, folder: str) -> list[pafs.FileInfo]:
        """What lies in a folder, hidden things left out; nothing where there is none."""
        with _told(folder):
            infos = self.files.get_file_info(pafs.FileSelector(folder, allow_not_found=True))
        return [info for info in infos if not info.base_name.startswith((".", "_"))]

    def text(self, path: str) -> str:
        """The text of a file."""
        read = self.content(path)
        try:
            return read.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise Trouble("malformed", f"{path} is not UTF-8 text (byte {error.start})") from None

    def content(self, path: str) -> bytes:
        """The bytes of a file."""
        with _told(path), self.files.open_input_stream(path) as stream:
            read: bytes = stream.read(_LARGEST_FILE + 1)
        if len(read) > _LARGEST_FILE:
            raise Trouble("malformed", f"{path} is larger than {_LARGEST_FILE // 2**20} MiB")
        return read


def file_system_of(path: str) -> tuple[pafs.FileSystem, str]:
    """The file system that a folder or a URI of an object store names, and the path in it. Raises ArrowException or
    OSError where there is no such file system."""
    if "://" in path:
        files, inside = pafs.FileSystem.from_uri(path)
        return files, inside
    return pafs.LocalFileSystem(), str(Path(path).expanduser().absolute())


@contextmanager
def _told(path: str) -> Iterator[None]:
    """Trouble instead of what the file systems raise."""
    try:
        yield
    except FileNotFoundError:
        raise Trouble("missing", f"there is no {path}") from None
    except PermissionError as error:
        raise Trouble("refused", f"{path}: {error.strerror or 'permission denied'}") from None
    except pa.ArrowException as error:
        raise Trouble("malformed", redact(f"{path}: {error}")) from None
    except OSError as error:
        raise Trouble("unreachable", redact(f"{path}: {error.strerror or error}")) from None
