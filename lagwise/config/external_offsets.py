"""Settings of the places where offsets are kept that are not committed to Kafka (docs/external-offsets.md)."""

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from lagwise.config.base import Settings
from lagwise.config.values import Holds, HttpAddress, Name, PathOrUri, Reference
from lagwise.platform.secrets import is_reference, redact

_Text = Annotated[str, Field(min_length=1)]


class _Place(Settings):
    name: Name
    """How the source is called in tables, pages and messages."""
    timeout_seconds: Annotated[float, Field(ge=0.1, le=60)] = 5.0
    """How long reading it may take. Its groups are `unreadable` where it takes longer; nothing else waits for it."""


class _Files(_Place):
    path: PathOrUri
    """What is read: a local path or a URI (`s3://…`, `gs://…`, `abfss://…`, `hdfs://…`). `*` stands for any \
characters within a name. Checkpoint folders, or files."""
    group: Annotated[str, Field(min_length=1, max_length=249)] | None = None
    """The group that the offsets are shown as; null is the name of the folder, or of the file without its suffix."""

    @model_validator(mode="after")
    def _one_group_is_one_place(self) -> "_Files":
        if self.group is not None and "*" in self.path and self._is_one_group_a_place:
            raise ValueError("a group of its own needs a path of its own: leave out group, or the * of path")
        return self

    @property
    def _is_one_group_a_place(self) -> bool:
        return True


class SparkCheckpoints(_Files):
    """Checkpoint folders of Spark Structured Streaming."""

    type: Literal["spark"] = "spark"
    """The kind of source."""


class OffsetFiles(_Files):
    """Files that hold offsets."""

    type: Literal["files"] = "files"
    """The kind of source."""
    format: Literal["json", "csv"] | None = None
    """How the files are written; null goes by their suffix (`.csv`, anything else is JSON)."""

    @property
    def _is_one_group_a_place(self) -> bool:
        return False  # the parts of one group may lie in several files


class SqlOffsets(_Place):
    """A table of offsets in a database."""

    type: Literal["sql"] = "sql"
    """The kind of source."""
    url: Annotated[_Text, Holds.DATABASE]
    """SQLAlchemy URL of the database; where it holds a password, as a reference `${env:NAME}` or `${file:/path}`."""
    query: _Text
    """A query that returns the columns `group`, `topic`, `partition`, `offset` (the next to be read; null is none) \
and, where it is known, `updated_at`. It is sent as it is."""

    @field_validator("url")
    @classmethod
    def _password_is_a_reference(cls, value: str) -> str:
        if not is_reference(value):
            if redact(value) != value:
                raise ValueError("it holds a password: write ${env:NAME} or ${file:/path} here, not the URL itself")
            if "://" not in value:
                raise ValueError("must be a URL of SQLAlchemy, as in postgresql+psycopg://user@host/database")
        return value


class FlinkJobs(_Place):
    """The running jobs of a Flink cluster that have Kafka sources."""

    type: Literal["flink"] = "flink"
    """The kind of source."""
    url: HttpAddress
    """Address of the REST interface, as in `http://jobmanager:8081`; may be a reference."""
    token: Reference | None = None
    """What is sent as `Authorization: Bearer …`, as a reference `${env:NAME}` or `${file:/path}`; null sends none."""
    jobs: dict[str, str] = {}
    """The consumer group (`group.id`) of a job, by the job's name, which Flink does not tell. A job that is not here \
is a group of its own name."""


OffsetsFrom = Annotated[SparkCheckpoints | SqlOffsets | OffsetFiles | FlinkJobs, Field(discriminator="type")]
