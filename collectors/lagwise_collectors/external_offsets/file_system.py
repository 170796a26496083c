"""Files and folders on a disk or in an object store, by a path with ``*``. All errors are OffsetSourceTrouble."""

from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from lagwise.platform.secrets import redact
from lagwise_collectors.external_offsets.model import OffsetSourceTrouble

#: Larger files are rejected: a file of offsets is small.
_LARGEST_FILE = 64 * 1024 * 1024
_MAX_MATCHES = 1_000


class OffsetFileSystem:
    """A file system, and the path in it, which may have ``*``."""

    def __init__(self, path: str) -> None:
        with _troubles_of(path):
            self.files, self._pattern = file_system_of(path)

    def matches(self) -> list[pafs.FileInfo]:
        """Files and folders that match, by name. Raises OffsetSourceTrouble where a path without ``*`` is missing."""
        infos = self.matches_or_none()
        if not infos and "*" not in self._pattern:
            raise OffsetSourceTrouble("missing", f"there is no {self._pattern}")
        return infos

    def matches_or_none(self) -> list[pafs.FileInfo]:
        """Files and folders that match, by name; an empty list where there are none."""
        head, *rest = self._pattern.split("/")
        paths = [head]
        for segment in rest:
            if "*" not in segment:
                paths = [f"{base}/{segment}" for base in paths]
                continue
            paths = [i.path for base in paths for i in self.listed(base or "/") if fnmatchcase(i.base_name, segment)]
            if len(paths) > _MAX_MATCHES:
                raise OffsetSourceTrouble(
                    "malformed", f"{self._pattern} matches more than {_MAX_MATCHES} files or folders"
                )
        with _troubles_of(self._pattern):
            infos = [info for info in self.files.get_file_info(paths) if info.type != pafs.FileType.NotFound]
        return sorted(infos, key=lambda info: info.path)

    def listed(self, folder: str) -> list[pafs.FileInfo]:
        """The contents of a folder without hidden files; an empty list where it does not exist."""
        with _troubles_of(folder):
            infos = self.files.get_file_info(pafs.FileSelector(folder, allow_not_found=True))
        return [info for info in infos if not info.base_name.startswith((".", "_"))]

    def text(self, path: str) -> str:
        """The text of a file."""
        read = self.content(path)
        try:
            return read.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise OffsetSourceTrouble("malformed", f"{path} is not UTF-8 text (byte {error.start})") from None

    def content(self, path: str) -> bytes:
        """The bytes of a file."""
        with _troubles_of(path), self.files.open_input_stream(path) as stream:
            read: bytes = stream.read(_LARGEST_FILE + 1)
        if len(read) > _LARGEST_FILE:
            raise OffsetSourceTrouble("malformed", f"{path} is larger than {_LARGEST_FILE // 2**20} MiB")
        return read


def file_system_of(path: str) -> tuple[pafs.FileSystem, str]:
    """The file system that a folder or a URI of an object store names, and the path in it. Raises ArrowException or
    OSError where there is no such file system."""
    if "://" in path:
        files, inside = pafs.FileSystem.from_uri(path)
        return files, inside
    return pafs.LocalFileSystem(), str(Path(path).expanduser().absolute())


@contextmanager
def _troubles_of(path: str) -> Iterator[None]:
    """Raise OffsetSourceTrouble for the errors of file systems."""
    try:
        yield
    except FileNotFoundError:
        raise OffsetSourceTrouble("missing", f"there is no {path}") from None
    except PermissionError as error:
        raise OffsetSourceTrouble("refused", f"{path}: {error.strerror or 'permission denied'}") from None
    except pa.ArrowException as error:
        raise OffsetSourceTrouble("malformed", redact(f"{path}: {error}")) from None
    except OSError as error:
        raise OffsetSourceTrouble("unreachable", redact(f"{path}: {error.strerror or error}")) from None
