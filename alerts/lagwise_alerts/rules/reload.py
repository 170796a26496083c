"""Reads the file of rules again when it changes. An invalid file changes nothing: the rules before it stay in force."""

from collections.abc import Sequence
from pathlib import Path

from lagwise.platform.errors import ConfigError
from lagwise_alerts.rules.rule_file import RuleBook, load_rules


class RuleFileWatch:
    """The rules of a file, or the default rules (None). Raises ConfigError where the file is invalid at the start."""

    def __init__(self, path: Path | None, channels: Sequence[str]) -> None:
        self._path = path
        self._channels = tuple(channels)
        self._content = self._read_bytes()
        self.book: RuleBook = load_rules(path, self._channels)
        #: What is wrong with the file as it is now, in one line; None where its rules are in force.
        self.trouble: str | None = None

    def refresh(self) -> bool:
        """Use the rules of the file if it has changed and is valid. Returns whether the rules were replaced."""
        content = self._read_bytes()
        if self._path is None or content == self._content:
            return False
        self._content = content
        try:
            self.book = load_rules(self._path, self._channels)
        except ConfigError as error:
            number = len(self.book.rules)
            stay = "1 earlier rule stays" if number == 1 else f"{number} earlier rules stay"
            self.trouble = f"{' '.join(str(error).split())}; the {stay} in force"
            return False
        self.trouble = None
        return True

    def _read_bytes(self) -> bytes | None:
        """The bytes of the file, because two changes may have the same time. None where it cannot be read."""
        try:
            return None if self._path is None else self._path.expanduser().read_bytes()
        except OSError:
            return None
