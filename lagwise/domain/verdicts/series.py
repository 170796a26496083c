"""Evidence at several moments of the same group-partitions, judged in one call: what rounds learn from the one before,
rows learn from the one before them."""

import numpy as np

from lagwise.domain.verdicts.columns import NULL, Array, Columns, before, is_first
from lagwise.domain.verdicts.status import judge, remembered, stalled_after_seconds
from lagwise.domain.verdicts.turns import awaits_turn


def judged_in_series(evidence: Columns, pair: Array, moment: Array, view: Array) -> dict[str, Array]:
    """The evidence with what each row remembers of the moment before, and the verdicts. A ``view`` is a group at a
    moment: all that an owner has there is among the rows."""
    made = {**evidence, "is_where_it_was": _is_where_it_was(evidence["committed"], pair, moment)}
    owners = made | {
        "owner_now": _owner_now(view, made["owner"]),
        "stalled_after_seconds": stalled_after_seconds(made),
    }
    made["awaits_turn"] = awaits_turn(owners, owners)
    made |= remembered(made, pair, moment)
    return {**made, **judge(made)}


def _is_where_it_was(committed: Array, pair: Array, moment: Array) -> Array:
    """Whether the offset is where it was at the moment before."""
    order = np.lexsort((moment, pair))
    ordered = committed[order]
    made = np.empty(len(pair), bool)
    made[order] = ~is_first(pair[order]) & (ordered != NULL) & (ordered == before(ordered))
    return made


def _owner_now(view: Array, owner: Array) -> Array:
    """A number for each owner of each group at each moment; -1 where there is none."""
    return np.where(owner >= 0, view * (owner.max(initial=0) + 1) + owner, -1)
