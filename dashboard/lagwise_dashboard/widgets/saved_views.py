"""Saved views: a name for the address of what is on the screen, for all readers. A dialog lists and changes them."""

from collections.abc import Callable, Sequence

import streamlit as st

from lagwise.links import pages
from lagwise.platform.errors import LagwiseError, OperatorError
from lagwise.platform.logs import clean
from lagwise_alerts.operate import Operator, SavedView, saved_views
from lagwise_dashboard import address, alert_reader, context, escaping, identity, tables
from lagwise_dashboard.widgets import grid, zone_choice
from lagwise_dashboard.widgets.error_boundary import boundary

#: Keys of the session: what the last action did, or why it did not, and how many worked.
_DONE, _FAILED, _TIMES = "saved_views_done", "saved_views_failed", "saved_views_times"
_PAGES = {page.path: page for page in pages.PAGES}
_VISIBLE_ROWS = 10


def show() -> None:
    """Draw the button that opens the dialog."""
    help_text = "Saved views: open one, or save what this page shows"
    if st.button("Views", icon=":material/bookmark:", key="saved_views", help=help_text, type="tertiary"):
        for told in (_FAILED, _DONE):
            st.session_state.pop(told, None)
        _dialog()


def shown() -> list[SavedView]:
    """All views whose page there is, by name. Raises DatabaseError."""
    return [view for view in alert_reader.saved_views() if view.page in _PAGES]


def title(view: SavedView) -> str:
    """The title of the view's page."""
    return _PAGES[view.page].title


def href(view: SavedView) -> str:
    """The address of a link within the dashboard."""
    return f"{view.page}?{view.query}" if view.query else view.page


@st.dialog("Saved views", width="medium")
def _dialog() -> None:
    zone_choice.use()  # a dialog runs by itself
    with boundary():
        views = shown()
        _list(views)
        person = identity.current()
        if person is None or not person.may_act:
            how = f": {person.advice}" if person is not None else ""
            st.caption(f"Read-only. Saving a view needs the role operator{how}.")
            return
        if error := st.session_state.pop(_FAILED, None):
            st.error(escaping.markdown(error), icon=":material/error:")
        elif done := st.session_state.pop(_DONE, None):
            st.success(escaping.markdown(done), icon=":material/check:")
        _save_form()
        if views:
            _change_form(views)


def _list(views: Sequence[SavedView]) -> None:
    if not views:
        st.caption("No view has been saved yet. A view is a name for the address of a page, with all that it shows.")
        return
    columns = [
        tables.text("View", [view.name for view in views]),
        tables.text("Page", [title(view) for view in views]),
        tables.text("Saved by", [view.saved_by for view in views]),
        tables.moment("Saved", [view.saved_at for view in views], context.now()),
    ]
    grid.show(
        columns,
        name="saved_views",
        label="Saved views",
        links=[href(view) for view in views],
        linked="View",
        visible_rows=_VISIBLE_ROWS,
    )


def _save_form() -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = _field("saved_views_name")
        st.text_input(
            "Save what this page shows as",
            key=name,
            max_chars=saved_views.MAX_NAME_LENGTH,
            placeholder="for example: payments team, last day",
        )
        st.button("Save", type="primary", key="saved_views_save", on_click=_do, args=(_save, name))


def _change_form(views: Sequence[SavedView]) -> None:
    with st.expander(
        "Rename or delete",
        key=_field("saved_views_change"),
    ):
        words = {view.id: escaping.visible(view.name) for view in views}
        chosen, name = _field("saved_views_chosen"), _field("saved_views_new_name")
        st.selectbox("View", list(words), format_func=words.__getitem__, key=chosen, index=None)
        st.text_input("New name", key=name, max_chars=saved_views.MAX_NAME_LENGTH)
        with st.container(horizontal=True):
            st.button("Rename", key="saved_views_rename", on_click=_do, args=(_rename, chosen, name))
            st.button("Delete", key="saved_views_delete", on_click=_do, args=(_delete, chosen))


def _field(name: str) -> str:
    """The key of a field: another one after each action, which empties the fields."""
    return f"{name}_{st.session_state.get(_TIMES, 0)}"


def _do(work: Callable[..., str], *args: object) -> None:
    """Run an action, if this reader may, and keep its result for the next drawing."""
    try:
        person = identity.current()
        if person is None or not person.may_act:
            raise OperatorError("this needs the role operator")
        st.session_state[_DONE] = work(identity.operator(person), *args)
    except LagwiseError as error:
        st.session_state[_FAILED] = clean(str(error))
    else:
        st.session_state[_TIMES] = st.session_state.get(_TIMES, 0) + 1
    alert_reader.clear_cache()


def _save(by: Operator, name: str) -> str:
    page = address.current_page().path
    made = saved_views.save(
        alert_reader.engine(), st.session_state[name], page, address.query(), by=by, now=context.now()
    )
    return f"Saved as “{made.name}”."


def _rename(by: Operator, chosen: str, name: str) -> str:
    number, new_name = _number(chosen), st.session_state[name]
    made = saved_views.rename(alert_reader.engine(), number, new_name, by=by, now=context.now())
    return f"It is now called “{made.name}”."


def _delete(by: Operator, chosen: str) -> str:
    gone = saved_views.remove(alert_reader.engine(), _number(chosen), by=by, now=context.now())
    return f"“{gone.name}” is deleted."


def _number(chosen: str) -> int:
    """The id of the view that is chosen in a field."""
    number: int | None = st.session_state[chosen]
    if number is None:
        raise OperatorError("choose a view first")
    return number
