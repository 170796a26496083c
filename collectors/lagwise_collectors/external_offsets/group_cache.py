"""Which groups each source had, kept in a file from start to start.

A source that cannot be read says nothing about its groups, not even which there are. With this they are unreadable;
else they would look as if they were gone, and after a restart of the collector as if their offsets had expired.
"""

import json
import logging
from collections.abc import Mapping
from pathlib import Path

from lagwise.platform.files import KeptFile

log = logging.getLogger("lagwise.collectors.elsewhere")

_FORMAT = "lagwise-groups-elsewhere-1"
#: Types of groups by name, by source.
Known = dict[str, dict[str, str]]


class GroupCache:
    """The groups of one cluster's sources; ``path`` None keeps them for this process only. For one thread."""

    def __init__(self, path: Path | None) -> None:
        cost = "after a restart, the groups of a source are unknown until it can be read"
        self._file = None if path is None else KeptFile(path, log, cost)
        self._known: Known = {} if path is None else _load(path)
        self._is_kept = True

    def of(self, source: str) -> Mapping[str, str]:
        """Types by name of the groups that the source had when it could last be read."""
        return self._known.get(source, {})

    def keep(self, source: str, groups: Mapping[str, str]) -> None:
        """Remember what the source has now. A file that cannot be written costs only the memory across a restart."""
        if self._known.get(source, {}) == groups and self._is_kept:
            return
        self._known[source] = dict(groups)
        if self._file is not None:
            self._is_kept = self._file.write(json.dumps({"format": _FORMAT, "sources": self._known}).encode())


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
