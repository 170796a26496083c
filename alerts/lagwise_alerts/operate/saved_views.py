"""Saved views: names for addresses of the dashboard, which all its readers share and operators change.

Every function raises DatabaseError where the database cannot be written, and OperatorError where the request is
invalid: the message gives the reason and what would work.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Engine, Row, delete, func, insert, select, update

from lagwise.platform.errors import OperatorError
from lagwise_alerts.operate.actions import Action, Operator, record, writing
from lagwise_alerts.outbox.database import SAVED_VIEWS

MAX_NAME_LENGTH = 80
#: Browsers and proxies pass on addresses of at least this length.
MAX_QUERY_LENGTH = 6000
MAX_VIEWS = 200


@dataclass(frozen=True, slots=True)
class SavedView:
    """A name for an address: the path of its ``page`` and its ``query``, as they stand there."""

    id: int
    name: str
    page: str
    query: str
    saved_by: str
    saved_at: datetime


def save(engine: Engine, name: str, page: str, query: str, *, by: Operator, now: datetime) -> SavedView:
    """Give an address a name that no other view has which they may change: an operator of some groups is not told
    that others use it."""
    name = _checked(name)
    if len(query) > MAX_QUERY_LENGTH:
        raise OperatorError(f"the address has more than {MAX_QUERY_LENGTH:,} characters: remove filters or scenarios")
    with writing(engine) as connection:
        _check_unique(connection, name, by)
        if (connection.scalar(select(func.count()).select_from(SAVED_VIEWS)) or 0) >= MAX_VIEWS:
            raise OperatorError(f"there are {MAX_VIEWS} saved views already: delete one first")
        row = {"name": name, "page": page, "query": query, "saved_by": by.name, "saved_at": now}
        made = view_of(connection.execute(insert(SAVED_VIEWS).values(row).returning(SAVED_VIEWS)).one())
        record(connection, by, Action.SAVE_VIEW, _words(made), "", now)
    return made


def rename(engine: Engine, view_id: int, name: str, *, by: Operator, now: datetime) -> SavedView:
    """Give a view another name."""
    name = _checked(name)
    with writing(engine) as connection:
        before = _load(connection, view_id, by)
        _check_unique(connection, name, by, among_others_than=view_id)
        changed = update(SAVED_VIEWS).where(SAVED_VIEWS.c.id == view_id).values(name=name).returning(SAVED_VIEWS)
        made = view_of(connection.execute(changed).one())
        record(connection, by, Action.RENAME_VIEW, _words(before), f"now {name}", now)
    return made


def remove(engine: Engine, view_id: int, *, by: Operator, now: datetime) -> SavedView:
    """Delete a view, and return what it was. The record of the action keeps its address."""
    with writing(engine) as connection:
        before = _load(connection, view_id, by)
        connection.execute(delete(SAVED_VIEWS).where(SAVED_VIEWS.c.id == view_id))
        record(connection, by, Action.DELETE_VIEW, _words(before), f"/{before.page}?{before.query}", now)
    return before


def view_of(row: Row[Any]) -> SavedView:
    """The view of a row."""
    return SavedView(**row._mapping)


def _checked(name: str) -> str:
    name = name.strip()
    if not name:
        raise OperatorError("a saved view needs a name")
    if len(name) > MAX_NAME_LENGTH:
        raise OperatorError(f"the name has more than {MAX_NAME_LENGTH} characters")
    if not name.isprintable():
        raise OperatorError("the name contains invisible characters, such as a line break: type it anew")
    return name


def _check_unique(connection: Connection, name: str, by: Operator, *, among_others_than: int | None = None) -> None:
    for row in connection.execute(select(SAVED_VIEWS.c.id, SAVED_VIEWS.c.name, SAVED_VIEWS.c.saved_by)):
        is_same = row.id != among_others_than and row.name.casefold() == name.casefold()
        if is_same and _may_change(by, row.saved_by):
            raise OperatorError(f"there is already a saved view “{row.name}”: choose another name")


def _load(connection: Connection, view_id: int, by: Operator) -> SavedView:
    """A view to be changed."""
    row = connection.execute(select(SAVED_VIEWS).where(SAVED_VIEWS.c.id == view_id)).one_or_none()
    if row is None or not _may_change(by, row.saved_by):
        raise OperatorError("this saved view has been deleted meanwhile")
    return view_of(row)


def _may_change(by: Operator, saved_by: str) -> bool:
    """An operator of some groups changes their own views alone."""
    return by.acts_on.is_unlimited or saved_by == by.name


def _words(view: SavedView) -> str:
    return f"view {view.name}"
