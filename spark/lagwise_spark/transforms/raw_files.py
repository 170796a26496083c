"""Raw samples straight from the data files of a lake on a disk, as Arrow batches.

Runs in Python beside Spark's executors, like :mod:`lagwise_spark.transforms.array_minutes`, and is sent there by value,
too. Names come as dictionaries, as the files hold them: nothing is spelled out for every row.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_ROWS_PER_BATCH = 200_000
_NAMES = ("cluster", "sample_id", "group", "topic", "topic_id")


@dataclass(frozen=True)
class Files:
    """Which rows of which files are wanted: those of a cluster's samples. ``paths`` come with the names of the columns
    to read of each; ``columns`` is the schema of the batches, in which the others are null."""

    paths: tuple[tuple[str, tuple[str, ...]], ...]
    cluster: str
    sample_ids: frozenset[str]
    columns: Mapping[str, pa.DataType]


def batches(files: Files) -> Iterator[pa.RecordBatch]:
    """The wanted rows, in the order of the files."""
    for path, names in files.paths:
        for batch in _batches(path, ["cluster", *names]):
            wanted = _is_in(batch["cluster"], (files.cluster,)) & _is_in(batch["sample_id"], files.sample_ids)
            if wanted.any():
                yield _complete(batch if wanted.all() else batch.filter(pa.array(wanted)), files.columns)


def _batches(path: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """All rows of a file. Raises OSError that names it, as pyarrow's own words about its content do not."""
    try:
        names = [name for name in columns if name in _NAMES]
        with pq.ParquetFile(path, read_dictionary=names, page_checksum_verification=True) as file:
            yield from file.iter_batches(_ROWS_PER_BATCH, columns=columns, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise OSError(f"cannot read {path}: {error}") from error


def _is_in(names: pa.DictionaryArray, wanted: Collection[str]) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    is_wanted = np.array([*(name in wanted for name in names.dictionary.to_pylist()), False])
    return np.asarray(is_wanted[names.indices.fill_null(len(is_wanted) - 1).to_numpy(zero_copy_only=False)])


def _complete(batch: pa.RecordBatch, columns: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    there: Iterable[str] = batch.schema.names
    return pa.RecordBatch.from_arrays(
        [batch[name] if name in there else pa.nulls(len(batch), kind) for name, kind in columns.items()],
        names=list(columns),
    )
