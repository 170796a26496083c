"""Which partitions of a round only wait for their turn: tasks see some of what an owner has, the driver sees all."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lagwise.domain.verdicts.columns import Array
from lagwise.domain.verdicts.turns import awaits_turn
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.schema import no_rows
from lagwise.tables.store import Lake
from lagwise.tables.written_files import WRITTEN
from lagwise_spark.tasks.arrow_columns import Numbering, columns_of, combined
from lagwise_spark.tasks.judging import IF_IN_TURN, IF_IT_HANGS, STATUS_FILES, VERDICT_ROWS, VERDICTS

_OF_OWNER = ("cluster", "group", "owner")
_OF_OWNED = ("standstill_seconds", "seen_moving_at", "is_unread", "absence_seconds")
_OF_ASKED = ("standstill_seconds", "as_of", "interval_seconds", "stalled_after_seconds")


def in_their_turns(lake: Lake, made: Mapping[str, pa.Table]) -> tuple[pa.Table, pa.Table]:
    """What the tasks of a round made, with all decided: the rows of which verdicts on groups are made
    (:data:`..judging.VERDICT_ROWS`), and the data files of `partition_status`. What the tasks could not decide is
    written here. Raises LakeError."""
    rows = made.get(VERDICTS, no_rows(VERDICT_ROWS))
    files = made.get(STATUS_FILES, no_rows(WRITTEN))
    if IF_IT_HANGS not in made:
        return rows, files
    decided = _decided(rows, made[IF_IT_HANGS], made[IF_IN_TURN])
    written = lake.write_files(PARTITION_STATUS, decided)
    return pa.concat_tables([rows, decided.select(rows.schema.names)]), pa.concat_tables([files, written])


def _decided(rows: pa.Table, if_it_hangs: pa.Table, if_in_turn: pa.Table) -> pa.Table:
    """Each of the undecided rows as it is, where ``rows`` are all others."""
    others = rows.select([*_OF_OWNER, *_OF_OWNED])
    others = others.filter(pc.is_in(others["owner"], value_set=pc.unique(if_it_hangs["owner"])))
    owned = pa.concat_tables([others, if_it_hangs.select(others.schema.names)])
    of_owned, of_asked = _owners(owned, if_it_hangs)
    waits = awaits_turn(
        columns_of(owned, owned.schema, _OF_OWNED) | {"owner_now": of_owned},
        columns_of(if_it_hangs, if_it_hangs.schema, _OF_ASKED) | {"owner_now": of_asked},
    )
    place = np.arange(len(waits)) + np.where(waits, len(waits), 0)
    return pa.concat_tables([if_it_hangs, if_in_turn]).take(place)


def _owners(*tables: pa.Table) -> list[Array]:
    """A number for each owner of each group, the same in all tables."""
    names = [Numbering() for _ in _OF_OWNER]
    numbers = [[its.of(table[name]) for its, name in zip(names, _OF_OWNER, strict=True)] for table in tables]
    return [combined(its, [len(one) for one in names]) for its in numbers]
