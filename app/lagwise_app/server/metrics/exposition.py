"""Columns as Prometheus' text: whole columns at a time, in a tenth of the CPU that a sample at a time takes in Python.

The text is valid in both formats, OpenMetrics 1.0 and the older text format 0.0.4: every family is a gauge, help texts
need no escaping, and `# EOF` and `# UNIT`, which only OpenMetrics knows, are comments to the other.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

END = b"# EOF\n"


@dataclass(frozen=True, slots=True)
class Metric:
    """A family of gauges: a sample for each row of a table in which its value is known."""

    name: str
    help: str
    #: Name of the table.
    rows: str
    #: Labels, each with its column. An empty value is the same as none to Prometheus.
    labels: Mapping[str, str]
    #: Column of the values; None is always 1, for what the labels say.
    value: str | None


def text_of(metrics: Iterable[Metric], tables: Mapping[str, pa.Table]) -> bytes:
    """Families with their samples, without the end. A family without any sample is left out."""
    blocks: dict[tuple[str, tuple[tuple[str, str], ...]], pa.Array] = {}
    parts: list[bytes] = []
    for metric in metrics:
        table = tables[metric.rows]
        shared = metric.rows, tuple(metric.labels.items())
        if shared not in blocks:
            blocks[shared] = label_block({label: table[column] for label, column in metric.labels.items()})
        values = (
            pa.repeat("1", table.num_rows)
            if metric.value is None
            else as_numbers(table[metric.value]).cast(pa.string())
        )
        samples = _samples(metric.name, blocks[shared], values)
        if samples:
            unit = f"# UNIT {metric.name} {_unit(metric.name)}\n" if _unit(metric.name) else ""
            parts += [f"# TYPE {metric.name} gauge\n{unit}# HELP {metric.name} {metric.help}\n".encode(), samples]
    return b"".join(parts)


def _unit(name: str) -> str:
    return "seconds" if name.startswith("lagwise_") and name.endswith("_seconds") else ""


def label_block(labels: Mapping[str, pa.ChunkedArray]) -> pa.Array:
    """What stands between the name and the value of a sample: the labels in braces, and a space."""
    pieces: list[pa.Array | str] = []
    for label, column in labels.items():
        pieces += ["{" if not pieces else ",", f'{label}="', escaped(column), '"']
    return pc.binary_join_element_wise(*pieces, "} ", "") if pieces else pa.scalar(" ")


def escaped(column: pa.ChunkedArray) -> pa.Array:
    """Text for between quotes. Null becomes empty, and the character 0, which ends the text for Prometheus' parser, the
    replacement character."""
    texts = _in_one(column).cast(pa.string()).fill_null("")
    for plain, written in (("\\", "\\\\"), ("\n", "\\n"), ('"', '\\"'), ("\0", "\ufffd")):
        texts = pc.replace_substring(texts, plain, written)
    return texts


def as_numbers(column: pa.ChunkedArray) -> pa.Array:
    """Numbers, of times the seconds since 1970. What is not a finite number is null: it is not known."""
    values = _in_one(column)
    if pa.types.is_timestamp(values.type):
        values = pc.divide(pc.cast(values, pa.timestamp("us", "UTC")).cast(pa.int64()).cast(pa.float64()), 1e6)
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_finite(values), values, None)
    return values


def _in_one(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _samples(name: str, block: pa.Array | pa.Scalar, values: pa.Array) -> bytes:
    # Null where the value is. The texts of an array without nulls lie one behind the other in one buffer.
    lines = pc.binary_join_element_wise(name, block, values, "\n", "").cast(pa.large_string()).drop_null()
    if not len(lines):
        return b""
    offsets, text = lines.buffers()[1:]
    ends = pa.Array.from_buffers(pa.int64(), len(lines) + lines.offset + 1, [None, offsets])
    return bytes(memoryview(text)[ends[lines.offset].as_py() : ends[-1].as_py()])
