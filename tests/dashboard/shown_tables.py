"""The tables of a page that an AppTest opened, as a reader sees them."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shown:
    """One table: its cells as text (badges as lists, None where a dash stands), what its columns sort by, and the
    orders of its list that its headings ask for."""

    name: str
    cells: dict[str, list[Any]]
    order: dict[str, list[float | None]]
    rows: int
    list_orders: dict[str, str]

    @property
    def titles(self) -> list[str]:
        return list(self.cells)

    def __getitem__(self, title: str) -> list[Any]:
        return self.cells[title]


def tables(app: Any) -> list[Shown]:
    """All tables, in the order of the page."""
    found = []
    for element in app.get("bidi_component"):
        if "-table_" not in element.proto.id:
            continue
        data = json.loads(element.proto.json)
        columns = data["columns"]
        found.append(
            Shown(
                element.proto.id.rpartition("-table_")[2],
                {c["title"]: c["cells"] for c in columns},
                {c["title"]: c["order"] for c in columns if c["order"] is not None},
                data["rows"],
                data["orders"] or {},
            )
        )
    return found


def table(app: Any, name: str) -> Shown:
    """The table of this name."""
    return next(one for one in tables(app) if one.name == name)


def with_column(app: Any, title: str) -> list[Shown]:
    """The tables that have a column of this title."""
    return [one for one in tables(app) if title in one.cells]
