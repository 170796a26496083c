"""All groups at a glance: a cell for each, worst first. The legend counts statuses and filters by them.

It is a component of our own and no chart: of thousands of groups, the browser gets a few letters each and draws one
shape for each status.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import streamlit as st

from lagwise.domain.vocabulary import DISPLAY_ORDER, display_rank
from lagwise.links import pages, parameters
from lagwise_dashboard import address, appearance, escaping
from lagwise_dashboard.queries.overview import SENTENCE_START, FleetGroup
from lagwise_dashboard.tables import BASE_36
from lagwise_dashboard.widgets import component, reserved

_COMPONENT = component.declared("fleet", Path(__file__).parent, "fleet")
_KEY = "fleet"
#: Pixels (fleet.css, fleet.js): of the sentence or the legend, of what is between them, of a line of cells, and the
#: most that the cells have where they are small.
_TEXT_HEIGHT, _GAP, _LINE_HEIGHT, _CELLS_HEIGHT = 20, 5, 18, 45
#: So many cells are in a line, and so many stand beside the sentence.
_IN_A_LINE, _FEW = 68, 24
#: So many blocks are named; the groups of the others, which are the least in trouble, share one.
_MAX_BLOCKS = 24
#: So many groups have the start of their sentence at the pointer, the worst ones; of others it explains the status.
_MAX_SENTENCES = 300


@dataclass(frozen=True, slots=True)
class Block:
    """Groups that are drawn together, under their name: empty where nothing is grouped. ``href`` narrows the page to
    the name."""

    name: str
    groups: list[FleetGroup]
    href: str | None = None


def blocks(
    groups: Iterable[FleetGroup],
    name_of: Callable[[FleetGroup], str | None],
    *,
    nameless: str,
    href: Callable[[str], str | None] = lambda _: None,
) -> list[Block]:
    """The groups by name, those with the worst and the most trouble first. Groups without one are ``nameless``."""
    by_name: dict[str | None, list[FleetGroup]] = {}
    for one in groups:
        by_name.setdefault(name_of(one) or None, []).append(one)
    ranked = sorted(by_name.items(), key=lambda item: (_severity(item[1]), item[0] is None, item[0] or ""))
    shown = ranked if len(ranked) <= _MAX_BLOCKS else ranked[: _MAX_BLOCKS - 1]
    result = [Block(nameless, its) if name is None else Block(name, its, href(name)) for name, its in shown]
    if others := ranked[len(shown) :]:
        rest = sorted((one for _, its in others for one in its), key=_place)
        result.append(Block(f"{len(others):,} others", rest))
    return result


def show(shown: Sequence[Block], sentence: str) -> None:
    """Draw the strip: the sentence on all of it, the legend, and the blocks.

    A click on a cell opens the group's page; a click on the legend shows only that status, and with it the others that
    were chosen.
    """

    def choose() -> None:
        status = st.session_state[_KEY].status
        now = address.get(parameters.STATUS)
        wanted = set(now) ^ {status}
        address.change({parameters.STATUS: tuple(one.value for one in DISPLAY_ORDER if one in wanted)})

    with reserved.room(_KEY, height(shown, sentence)):
        _COMPONENT(key=_KEY, data=data_of(shown, sentence), on_status_change=choose)


def data_of(shown: Sequence[Block], sentence: str) -> dict[str, Any]:
    """What the script of the strip is given (arguments as of :func:`show`)."""
    chosen = address.get(parameters.STATUS)
    # Counted here and not by a query of its own: a round of the analysis may end between two queries.
    counts = Counter(one.status for block in shown for one in block.groups)
    statuses = sorted({*counts, *chosen}, key=display_rank)
    return _cells(shown, statuses) | {
        "sentence": escaping.visible(sentence),
        "legend": [_entry(status, counts[status]) for status in statuses],
        "chosen": [statuses.index(status) for status in chosen],
    }


def height(shown: Sequence[Block], sentence: str) -> int:
    """The least height of the strip in a wide window, in pixels."""
    cells, has_sentence = sum(len(block.groups) for block in shown), bool(sentence)
    parts = [_TEXT_HEIGHT]
    if has_sentence:
        parts.append(_TEXT_HEIGHT)
    if cells > _FEW:
        parts.append(min(_CELLS_HEIGHT, _LINE_HEIGHT * math.ceil(cells / _IN_A_LINE)))
    return sum(parts) + _GAP * (len(parts) - 1)


def _entry(status: str, number: int) -> dict[str, Any]:
    badge = appearance.of_status(status)
    return {
        "status": status,
        "sign": badge.sign,
        "word": badge.word,
        "count": f"{number:,}",
        "colour": badge.colour,
        "meaning": badge.meaning,
    }


def _cells(shown: Sequence[Block], statuses: Sequence[str]) -> dict[str, Any]:
    """The cells, in as few letters as possible: thousands are sent at every refresh.

    ``runs`` are the cells of a block one after the other: the places of their status and their cluster, and how many
    they are. ``names`` has, instead of the characters that a name shares with the one before it, a digit that says how
    many they are.
    ``visible`` is how names with control characters are shown, and ``says`` has the sentences of the groups that are
    worst off, both by the place of the cell.
    """
    cells = [one for block in shown for one in block.groups]
    clusters = sorted({one.cluster for one in cells})
    names = [one.group for one in cells]
    worst = sorted((i for i, one in enumerate(cells) if not one.is_quiet), key=lambda i: _place(cells[i]))
    return {
        "blocks": [
            {
                "name": escaping.visible(block.name),
                "href": block.href,
                "runs": [
                    [statuses.index(status), clusters.index(cluster), len(list(its))]
                    for (status, cluster), its in groupby(block.groups, key=lambda one: (one.status, one.cluster))
                ],
            }
            for block in shown
        ],
        "clusters": [escaping.visible(cluster) for cluster in clusters],
        "names": [_after(before, name) for before, name in zip(["", *names], names, strict=False)],
        "visible": {i: seen for i, name in enumerate(names) if (seen := escaping.visible(name)) != name},
        "says": {i: _cut(cells[i].sentence) for i in worst[:_MAX_SENTENCES]},
        "links": address.hrefs(
            pages.GROUP,
            ({parameters.CLUSTER: cluster, parameters.GROUP: None, parameters.TOPIC: None} for cluster in clusters),
        ),
    }


def _cut(sentence: str) -> str:
    """The first letters of a sentence, which the lake was asked for one more than."""
    return escaping.visible(sentence if len(sentence) <= SENTENCE_START else f"{sentence[:SENTENCE_START].rstrip()}…")


def _after(before: str, name: str) -> str:
    shared = 0
    for one, other in zip(before[: len(BASE_36) - 1], name, strict=False):
        if one != other:
            break
        shared += 1
    return BASE_36[shared] + name[shared:]


def _place(one: FleetGroup) -> tuple[int, str, str]:
    return display_rank(one.status), one.cluster, one.group


def _severity(groups: Sequence[FleetGroup]) -> list[int]:
    """Sorts the block with most groups in the worst status first."""
    return [-sum(one.status == status for one in groups) for status in DISPLAY_ORDER]
