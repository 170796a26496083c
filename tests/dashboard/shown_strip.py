"""The strip of all groups on an overview that an AppTest opened, as the browser reads it."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ShownBlock:
    """A block: its name, and the groups of its cells with their statuses."""

    name: str
    groups: list[tuple[str, str]]


@dataclass(frozen=True)
class ShownStrip:
    """The strip. ``counts`` are those of the legend, by status; ``says`` has the sentence of a group, if any."""

    sentence: str
    counts: dict[str, str]
    chosen: list[str]
    blocks: list[ShownBlock]
    says: dict[str, str]


def strip(app: Any) -> ShownStrip:
    """The strip of the page."""
    [written] = [e.proto.json for e in app.get("bidi_component") if e.proto.id.endswith("-fleet")]
    return read(json.loads(written))


def read(data: dict[str, Any]) -> ShownStrip:
    """What the strip's data means, read as the browser does."""
    statuses = [entry["status"] for entry in data["legend"]]
    names: list[str] = []
    for written in data["names"]:
        names.append((names[-1][: int(written[0], 36)] if names else "") + written[1:])
    rest = iter(names)
    blocks = [
        ShownBlock(block["name"], [(next(rest), statuses[s]) for s, _, number in block["runs"] for _ in range(number)])
        for block in data["blocks"]
    ]
    return ShownStrip(
        data["sentence"],
        {entry["status"]: entry["count"] for entry in data["legend"]},
        [statuses[place] for place in data["chosen"]],
        blocks,
        {names[int(place)]: text for place, text in data["says"].items()},
    )
