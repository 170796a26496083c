"""The codes of errors that a person can do something about: stable, so that runbooks and searches survive a change of
the sentence. ``docs/errors.md`` says what each means and what to do; a test compares both with where they are used.
"""

import errno
from enum import StrEnum
from typing import overload


class ErrorCode(StrEnum):
    """One kind of error, by what has to be done about it."""

    # Settings
    SETTINGS_INVALID = "settings_invalid"
    SETTINGS_UNREADABLE = "settings_unreadable"
    SECRET_UNREADABLE = "secret_unreadable"  # noqa: S105 (no secret)
    SIGN_IN_INCOMPLETE = "sign_in_incomplete"
    ALERT_RULES_INVALID = "alert_rules_invalid"
    NO_CLUSTER = "no_cluster"
    # What this machine lacks
    JAVA_MISSING = "java_missing"
    EXTRA_MISSING = "extra_missing"
    DRIVER_MISSING = "driver_missing"
    SPARK_NOT_STARTED = "spark_not_started"
    EXECUTORS_INCOMPLETE = "executors_incomplete"
    REQUIREMENT_MISSING = "requirement_missing"
    DISK_FULL = "disk_full"
    PERMISSION_DENIED = "permission_denied"
    FILE_NOT_WRITABLE = "file_not_writable"
    CANNOT_LISTEN = "cannot_listen"
    # Processes
    ALREADY_RUNNING = "already_running"
    NO_HEARTBEAT = "no_heartbeat"
    PROCESS_FAILED = "process_failed"
    # The lake
    LAKE_UNUSABLE = "lake_unusable"
    LAKE_MISSING = "lake_missing"
    LAKE_NEWER = "lake_newer"
    NO_RESULTS = "no_results"
    TABLE_UNREADABLE = "table_unreadable"
    TABLE_ALTERED = "table_altered"
    TABLE_OF_ANOTHER_VERSION = "table_of_another_version"
    # The operational database
    DATABASE_UNUSABLE = "database_unusable"
    DATABASE_UNREACHABLE = "database_unreachable"
    DATABASE_MISSING = "database_missing"
    DATABASE_NEWER = "database_newer"
    DATABASE_TOO_OLD = "database_too_old"
    # Watched clusters
    CLUSTER_UNREADABLE = "cluster_unreadable"
    CLUSTER_UNREACHABLE = "cluster_unreachable"
    CLUSTER_LOGIN_FAILED = "cluster_login_failed"
    CLUSTER_RIGHT_MISSING = "cluster_right_missing"
    # What was asked for
    UNKNOWN_NAME = "unknown_name"
    AMBIGUOUS_NAME = "ambiguous_name"
    REQUEST_REJECTED = "request_rejected"
    TRACE_INVALID = "trace_invalid"


_OF_THE_SYSTEM = {
    errno.ENOSPC: ErrorCode.DISK_FULL,
    errno.EDQUOT: ErrorCode.DISK_FULL,
    errno.EACCES: ErrorCode.PERMISSION_DENIED,
    errno.EPERM: ErrorCode.PERMISSION_DENIED,
    errno.EROFS: ErrorCode.PERMISSION_DENIED,
    errno.EADDRINUSE: ErrorCode.CANNOT_LISTEN,
}
#: How libraries that lose the number of an error (delta-rs, SQLite) say that there is no space left.
_FULL = ("no space left on device", "disk quota exceeded", "database or disk is full")


@overload
def code_of_system(error: BaseException, otherwise: ErrorCode) -> ErrorCode: ...
@overload
def code_of_system(error: BaseException) -> ErrorCode | None: ...
def code_of_system(error: BaseException, otherwise: ErrorCode | None = None) -> ErrorCode | None:
    """The code of an error of the operating system, also where a library has put it into words of its own."""
    found = _OF_THE_SYSTEM.get(error.errno or 0) if isinstance(error, OSError) else None
    if found is None and any(words in str(error).lower() for words in _FULL):
        return ErrorCode.DISK_FULL
    return found or otherwise
