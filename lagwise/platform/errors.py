"""Errors that a person can do something about. Their message is all that is shown: no stack trace."""


class LagwiseError(Exception):
    """Base of every error whose message says what is wrong and what to do about it."""


class ConfigError(LagwiseError):
    """The settings cannot be used as they are."""


class LakeError(LagwiseError):
    """A table cannot be read or written."""


class UnreadableTable(LakeError):
    """A table is there, and what it holds cannot be read: its storage is gone, or files are damaged."""


class DatabaseError(LagwiseError):
    """The operational database (alerts, deliveries) cannot be read or written."""


class DatabaseGone(DatabaseError):
    """Its server cannot be reached, or has ended the session. The words differ as it goes down and comes up again."""


class NewerThanProgram(DatabaseError, LakeError):
    """A newer Lagwise wrote the lake or the database, and this one cannot know what it means."""


class OperatorError(LagwiseError):
    """What an operator asks for makes no sense as things are."""


class ClusterError(LagwiseError):
    """A watched cluster cannot be reached, or refuses what is asked of it."""


class MissingRequirement(LagwiseError):
    """Something this machine must have (Java, a browser, a jar) is missing."""
