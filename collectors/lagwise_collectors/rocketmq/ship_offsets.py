"""``lagwise ship-offsets``: copies of members' ``offsets.json`` to where the collector can read them."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from lagwise.platform.errors import ConfigError
from lagwise.platform.logs import clean
from lagwise.platform.secrets import redact
from lagwise_collectors.external_offsets.file_system import file_system_of
from lagwise_collectors.rocketmq.local_offsets import FILE, progress_of
from lagwise_collectors.rocketmq.remoting.errors import MalformedResponse


@dataclass(slots=True)
class ShippingRound:
    """The result of one round: files found, copied, skipped because they are old, and why others failed."""

    found: int = 0
    copied: int = 0
    old: int = 0
    failed: list[str] = field(default_factory=list)


class OffsetShipper:
    """Copies ``CLIENT_ID/GROUP/offsets.json`` below a folder to the same names below another folder.

    A file is copied when it has changed, so that the age of the copy is that of the offsets. ``place`` is a folder
    or a URI of an object store. Raises ConfigError where the place is invalid, or the folder does not exist.
    """

    def __init__(
        self, folder: Path, place: str, *, max_age_seconds: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._folder = folder
        self._max_age_seconds = max_age_seconds
        self._clock = clock
        self._shipped: dict[str, int] = {}
        if redact(place) != place:
            raise ConfigError("--to holds a secret: credentials of an object store come from the environment")
        try:
            self._files, self._base = file_system_of(place)
        except (pa.ArrowException, OSError) as error:
            raise ConfigError(f"--to {place} cannot be written to: {redact(str(error))}") from None
        if not folder.is_dir():
            raise ConfigError(
                f"the folder {folder} does not exist: set --from to the folder in which clients store their offsets"
            )

    def round(self) -> ShippingRound:
        """Copy the files that changed since the previous round. Errors are reported and tried again."""
        shipped = ShippingRound()
        for source in sorted(self._folder.glob(f"*/*/{FILE}")):
            name = source.relative_to(self._folder).as_posix()
            shipped.found += 1
            try:
                written_ns = source.stat().st_mtime_ns
                if self._clock() - written_ns / 1e9 > self._max_age_seconds:
                    shipped.old += 1
                    continue
                if name not in self._shipped:
                    self._shipped[name] = self._copied_ns(name)
                if self._shipped[name] < written_ns:
                    self._copy(source, name)
                    self._shipped[name] = written_ns
                    shipped.copied += 1
            except FileNotFoundError:
                continue  # its client replaces it at this moment; it is there in the next round
            except MalformedResponse as error:
                shipped.failed.append(clean(f"{name}: {error}"))
            except (pa.ArrowException, OSError) as error:
                shipped.failed.append(clean(redact(f"{name}: {error}")))
        return shipped

    def _copied_ns(self, name: str) -> int:
        """When the copy was written that is there already, nanoseconds since 1970; 0 where there is none."""
        info = self._files.get_file_info(f"{self._base}/{name}")
        return info.mtime_ns or 0

    def _copy(self, source: Path, name: str) -> None:
        body = source.read_bytes()
        progress_of(body)  # raises for an incomplete file
        target = f"{self._base}/{name}"
        self._files.create_dir(os.path.dirname(target), recursive=True)
        if isinstance(self._files, pafs.LocalFileSystem):
            Path(f"{target}.tmp").write_bytes(body)
            os.replace(f"{target}.tmp", target)  # readers see the old file or the new one
        else:
            with self._files.open_output_stream(target) as stream:
                stream.write(body)
