"""The rules as their file says now. One that cannot be used changes nothing: the rules before it stay in force."""

from collections.abc import Sequence
from pathlib import Path

from lagwise.platform.errors import ConfigError
from lagwise_alerts.rules.rule_file import RuleBook, load_rules


class RuleFileWatch:
    """The rules of a file (None: those that come with Lagwise), read again when the file has changed.

    Raises ConfigError at the beginning, where there are no rules before to go on with.
    """

    def __init__(self, path: Path | None, channels: Sequence[str]) -> None:
        self._path = path
        self._channels = tuple(channels)
        self._content = self._read()
        self.book: RuleBook = load_rules(path, self._channels)
        #: What is wrong with the file as it is now, in one line; None where it is in force.
        self.trouble: str | None = None

    def refresh(self) -> bool:
        """Take over the rules if the file has changed and they can be used; whether they were taken over."""
        content = self._read()
        if self._path is None or content == self._content:
            return False
        self._content = content
        try:
            self.book = load_rules(self._path, self._channels)
        except ConfigError as error:
            number = len(self.book.rules)
            stay = "1 rule before stays" if number == 1 else f"{number} rules before stay"
            self.trouble = f"{' '.join(str(error).split())}; the {stay} in force"
            return False
        self.trouble = None
        return True

    def _read(self) -> bytes | None:
        """The bytes of the file, and not when it was changed: that may lie within the same tick of a clock. None where
        it cannot be read, which is a change, too."""
        try:
            return None if self._path is None else self._path.expanduser().read_bytes()
        except OSError:
            return None
