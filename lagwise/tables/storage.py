"""The files of a lake as such: listed, read, moved, on a disk or in an object store."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow.fs as pafs
from deltalake.fs import DeltaStorageHandler

from lagwise.platform.error_codes import ErrorCode, code_of_system
from lagwise.platform.errors import LakeError
from lagwise.platform.files import replace_file
from lagwise.tables.engine_errors import in_a_line
from lagwise.tables.store import Lake


class Storage:
    """Files below one lake's URI; paths are relative to it. Raises LakeError where the storage cannot be used."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._files: pafs.FileSystem = (
            pafs.SubTreeFileSystem(lake.uri, pafs.LocalFileSystem())
            if lake.is_local
            else pafs.PyFileSystem(DeltaStorageHandler(lake.uri, lake.storage_options))
        )

    def sizes(self, folder: str) -> dict[str, int]:
        """The files in a folder and those below it, by their path in it, with their sizes in bytes."""
        with self._trouble(folder):
            found = self._files.get_file_info(pafs.FileSelector(folder, recursive=True, allow_not_found=True))
        return {f.path.removeprefix(f"{folder}/"): f.size for f in found if f.type is pafs.FileType.File}

    def read(self, path: str) -> bytes:
        """What a file holds. Raises FileNotFoundError where there certainly is none, else LakeError."""
        with self._trouble(path), self._files.open_input_file(path) as file:
            content: bytes = file.read()
            return content

    def replace(self, path: str, content: bytes) -> None:
        """Write a file on a disk as a whole: a reader sees what was there before or all of this."""
        place = Path(self._lake.uri, path)
        with self._trouble(path):
            place.parent.mkdir(parents=True, exist_ok=True)  # as the rest of the lake: others may read it
            replace_file(place, content, durable=True)

    def move(self, path: str, to: str) -> bool:
        """Move a file, replacing what is there; False where there is none to move."""
        with self._trouble(path):
            self._files.create_dir(to.rpartition("/")[0], recursive=True)
            try:
                self._files.move(path, to)
            except FileNotFoundError:
                return False
        return True

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with all that is in it."""
        with self._trouble(folder):
            self._files.delete_dir(folder)

    def folders(self, folder: str) -> list[str]:
        """Names of the folders in a folder."""
        with self._trouble(folder):
            found = self._files.get_file_info(pafs.FileSelector(folder, allow_not_found=True))
        return sorted(f.base_name for f in found if f.type is pafs.FileType.Directory)

    @contextlib.contextmanager
    def _trouble(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise LakeError(
                f"cannot use {self._lake.uri}/{path}: {in_a_line(error)}",
                code=code_of_system(error, ErrorCode.LAKE_UNUSABLE),
            ) from error
