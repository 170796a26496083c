"""Errors that a person can do something about. Their message is all that is shown: no stack trace."""

from lagwise.platform.error_codes import ErrorCode


class LagwiseError(Exception):
    """Base of every error whose message says what is wrong and what to do about it.

    ``code`` is what ``docs/errors.md`` explains. A class has the code of most of its errors, and an error that is
    mended in another way brings its own. None is left for what a person cannot mend.
    """

    code: ErrorCode | None = None

    def __init__(self, *args: object, code: ErrorCode | None = None) -> None:
        super().__init__(*args)
        if code is not None:
            self.code = code


def with_code(text: str, code: str | None) -> str:
    """A message as people read it, with its code at the end: ``… [disk_full]``."""
    return text if code is None else f"{text} [{code}]"


class ConfigError(LagwiseError):
    """The settings cannot be used as they are."""

    code = ErrorCode.SETTINGS_INVALID


class LakeError(LagwiseError):
    """A table cannot be read or written."""

    code = ErrorCode.LAKE_UNUSABLE


class UnreadableTable(LakeError):
    """A table is there, and what it holds cannot be read: its storage is gone, or files are damaged."""

    code = ErrorCode.TABLE_UNREADABLE


class DatabaseError(LagwiseError):
    """The operational database (alerts, deliveries) cannot be read or written."""

    code = ErrorCode.DATABASE_UNUSABLE


class DatabaseGone(DatabaseError):
    """Its server cannot be reached, or has ended the session. The words differ as it goes down and comes up again."""

    code = ErrorCode.DATABASE_UNREACHABLE


class NewerThanProgram(DatabaseError, LakeError):
    """A newer Lagwise wrote the lake or the database, and this one cannot know what it means."""


class OperatorError(LagwiseError):
    """What an operator asks for makes no sense as things are."""

    code = ErrorCode.REQUEST_REJECTED


class ClusterError(LagwiseError):
    """A watched cluster cannot be reached, or refuses what is asked of it."""

    code = ErrorCode.CLUSTER_UNREADABLE


class MissingRequirement(LagwiseError):
    """Something this machine must have (Java, a browser, a jar) is missing."""

    code = ErrorCode.REQUIREMENT_MISSING
