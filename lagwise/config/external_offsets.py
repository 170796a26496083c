"""Settings of the sources of external offsets: those that are not committed to Kafka (docs/external-offsets.md)."""

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from lagwise.config.base import Entry
from lagwise.config.values import IN_SECONDS, HttpAddress, Name, PathOrUri, Reference, SecretPart
from lagwise.platform.secrets import is_reference, redact

_Text = Annotated[str, Field(min_length=1)]


class _SourceSettings(Entry):
    name: Name
    """Name of the source in tables, on pages and in messages."""
    timeout_seconds: Annotated[float, Field(ge=0.1, le=60), IN_SECONDS] = 5.0
    """How long reading the source may take. After that its groups are `unreadable`; nothing else waits for it."""


class _Files(_SourceSettings):
    path: PathOrUri
    """Checkpoint folders or files to read: a local path or a URI (`s3://…`, `gs://…`, `abfss://…`, `hdfs://…`). `*` \
matches any characters within a name."""
    group: Annotated[str, Field(min_length=1, max_length=249)] | None = None
    """Group name under which the offsets are shown; null uses the name of the folder, or of the file without suffix."""

    @model_validator(mode="after")
    def _one_group_is_one_place(self) -> "_Files":
        if self.group is not None and "*" in self.path and self._is_one_group_a_place:
            raise ValueError("one group can have only one path: leave out group, or write a path without *")
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
    """Format of the files; null decides by the suffix (`.csv` is CSV, anything else is JSON)."""

    @property
    def _is_one_group_a_place(self) -> bool:
        return False  # the partitions of one group may be in several files


class SqlOffsets(_SourceSettings):
    """A table of offsets in a database."""

    type: Literal["sql"] = "sql"
    """The kind of source."""
    url: Annotated[_Text, SecretPart.DATABASE]
    """SQLAlchemy URL of the database. If it holds a password, give it as a reference `${env:NAME}` or \
`${file:/path}`."""
    query: _Text
    """A query that returns the columns `group`, `topic`, `partition`, `offset` (of the next record to read; \
null is none) and, if known, `updated_at`. The query is sent unchanged."""

    @field_validator("url")
    @classmethod
    def _password_is_a_reference(cls, value: str) -> str:
        if not is_reference(value):
            if redact(value) != value:
                raise ValueError("it contains a password: write ${env:NAME} or ${file:/path} here instead of the URL")
            if "://" not in value:
                raise ValueError("must be a URL of SQLAlchemy, as in postgresql+psycopg://user@host/database")
        return value


class FlinkJobs(_SourceSettings):
    """The running jobs of a Flink cluster that have Kafka sources."""

    type: Literal["flink"] = "flink"
    """The kind of source."""
    url: HttpAddress
    """Address of the REST interface, as in `http://jobmanager:8081`; may be a reference."""
    token: Reference | None = None
    """Token sent as `Authorization: Bearer …`, as a reference `${env:NAME}` or `${file:/path}`; null sends none."""
    jobs: dict[str, str] = {}
    """Consumer group (`group.id`) of each job, by job name, because Flink does not report it. A job that is not \
listed is shown as a group of the same name."""


ExternalOffsetSource = Annotated[SparkCheckpoints | SqlOffsets | OffsetFiles | FlinkJobs, Field(discriminator="type")]
