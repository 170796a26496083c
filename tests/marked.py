"""Secrets that can be found again, and the settings that may hold one.

How they are searched for does not depend on how the product redacts them.
"""

import base64
import hashlib
import itertools
import math
import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import BaseModel

from lagwise.config.errors import models_of, tag_of
from lagwise.config.secrecy import secret_part_of


class Marked:
    """Secrets by what they are for. References name variables of ``environment`` and files of ``folder`` in turn."""

    def __init__(self, folder: Path) -> None:
        self.environment: dict[str, str] = {}
        self._folder = folder
        self._marks: dict[str, str] = {}
        self._numbers = itertools.count()

    def mark(self, name: str) -> str:
        """A secret of letters and digits, which URL-encoding, JSON and HTML leave as it is."""
        digits = hashlib.sha256(name.encode()).hexdigest()[:16]
        return self._marks.setdefault(name, f"Zq7{digits}Mk{digits[::-1]}")

    def secret(self, name: str) -> str:
        """A secret around the mark, with characters that URLs, JSON and HTML escape."""
        return f"p/w+{self.mark(name)}=&'\"x"

    def reference(self, name: str, value: str | None = None) -> str:
        """A reference to a secret, or to a value that contains one."""
        value, number = value or self.secret(name), next(self._numbers)
        if number % 2:
            file = self._folder / f"secret-{number}"
            file.write_text(value + "\n", encoding="utf-8")
            return f"${{file:{file}}}"
        variable = f"LAGWISE_SECRET_{number}"
        self.environment[variable] = value
        return f"${{env:{variable}}}"

    def found_in(self, content: str | bytes) -> list[str]:
        """The names of the secrets in a text or in bytes, each with the encoding that it was found in."""
        data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
        return [
            f"{name} {encoding}"
            for name, mark in self._marks.items()
            for encoding, written in _encodings(mark.encode())
            if written in data
        ]


def _encodings(mark: bytes) -> list[tuple[str, bytes]]:
    found = [("in clear", mark), ("in hex", mark.hex().encode()), ("in HEX", mark.hex().upper().encode())]
    found += [("in URL-encoding", b"".join(b"%%%02X" % byte for byte in mark))]
    for before in range(3):  # the bytes in front of it decide by which characters base64 represents it
        padded = bytes(before) + mark
        written = base64.b64encode(padded)[math.ceil(8 * before / 6) : 8 * len(padded) // 6]
        found += [("in base64", written), ("in URL-safe base64", written.replace(b"+", b"-").replace(b"/", b"_"))]
    return found


class CommandLines:
    """Every command line of this machine, as any account can read them, while the block runs."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._stop.wait(0.1):
            for process in filter(str.isdigit, os.listdir("/proc")):
                try:
                    self.seen.add(Path("/proc", process, "cmdline").read_bytes())
                except OSError:
                    continue  # it has ended meanwhile

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()


def may_be_secret(model: type[BaseModel], path: str = "") -> set[str]:
    """The paths of all settings that may hold a secret, as in ``alerts.channels[slack].url``."""
    found = {f"{path}{name}" for name, field in model.model_fields.items() if secret_part_of(field)}
    for name, field in model.model_fields.items():
        for below in models_of(field.annotation):
            found |= may_be_secret(below, f"{path}{name}{_tag(below, field.annotation)}.")
    return found


def given(settings: BaseModel, path: str = "") -> set[str]:
    """The paths of those that have a value of their own in some settings."""
    found = set()
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if secret_part_of(field) and value != field.default:
            found.add(f"{path}{name}")
        for below in value if isinstance(value, tuple) else [value]:
            if isinstance(below, BaseModel):
                found |= given(below, f"{path}{name}{_tag(type(below), field.annotation)}.")
    return found


def _tag(model: type[BaseModel], annotation: Any) -> str:
    return f"[{tag_of(model)}]" if len(models_of(annotation)) > 1 else ""
