"""A warning about damaged files of the lake."""

import streamlit as st

from lagwise.domain import humanise
from lagwise_dashboard import context, escaping

_NAMED = 3


def left_out() -> None:
    """Show which damaged files are left out of the page, if any are."""
    files = context.lake().left_out
    if not files:
        return
    rows = sum(one.rows or 0 for one in files)
    named = "; ".join(escaping.markdown(str(one)) for one in files[:_NAMED])
    more = f"; and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
    what = humanise.plural(len(files), "damaged file")
    st.error(
        f"**{what} left out of the pages** ({humanise.plural(rows, 'row')}): {named}{more}. The next round of the "
        "analysis that reads a damaged file sets it aside; `lagwise doctor --repair` does so now.",
        icon=":material/broken_image:",
    )
