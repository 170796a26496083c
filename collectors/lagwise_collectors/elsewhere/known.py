"""Which groups each source had, kept in a file from start to start.

A source that cannot be read says nothing about its groups, not even which there are. With this they are unreadable;
else they would look as if they were gone, and after a restart of the collector as if their offsets had expired.
"""

import contextlib
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path

from lagwise.private_files import make_folder

log = logging.getLogger("lagwise.collectors.elsewhere")

_FORMAT = "lagwise-groups-elsewhere-1"
#: Types of groups by name, by source.
Known = dict[str, dict[str, str]]


class KnownGroups:
    """The groups of one cluster's sources; ``path`` None keeps them for this process only. For one thread."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: Known = {} if path is None else _load(path)

    def of(self, source: str) -> Mapping[str, str]:
        """Types by name of the groups that the source had when it could last be read."""
        return self._known.get(source, {})

    def keep(self, source: str, groups: Mapping[str, str]) -> None:
        """Remember what the source has now. A file that cannot be written costs only the memory across a restart."""
        if self._known.get(source, {}) == groups:
            return
        self._known[source] = dict(groups)
        if self._path is None:
            return
        part = self._path.with_name(self._path.name + ".part")
        try:
            make_folder(self._path.parent)
            part.write_text(json.dumps({"format": _FORMAT, "sources": self._known}), encoding="utf-8")
            os.replace(part, self._path)
        except OSError as error:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            log.warning("%s cannot be written: %s", self._path, error.strerror)


def _load(path: Path) -> Known:
    try:
        data = json.loads(path.read_bytes())
        if data["format"] != _FORMAT:
            raise ValueError(f"its format is {data['format']}")
        return {str(s): {str(name): str(kind) for name, kind in its.items()} for s, its in data["sources"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        log.warning("%s cannot be used, so groups are known again once their sources were read: %s", path, error)
        return {}
