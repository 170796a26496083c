"""What a reader sees instead of a stack trace: one clear line, and what to do."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from secrets import token_hex

import streamlit as st

from lagwise.platform.errors import ConfigError, DatabaseError, LagwiseError, LakeError, with_code
from lagwise.platform.log_events import LogEvent, event
from lagwise.platform.logs import clean
from lagwise_dashboard import escaping

log = logging.getLogger("lagwise.dashboard")

#: What to do where a table cannot be read. Markdown.
LAKE_ADVICE = (
    "Check that the storage of the lake can be reached and that the dashboard may read it; `lagwise doctor` checks "
    "both. The next round of the analysis that reads a damaged file sets it aside; `lagwise doctor --repair` does, too."
)

_WHAT_TO_DO: tuple[tuple[type[LagwiseError], str], ...] = (
    (LakeError, LAKE_ADVICE),
    (
        DatabaseError,
        "Alerts and their deliveries cannot be shown; verdicts are not affected. Check that the database of "
        "the setting `database` exists and that the dashboard may read it. `lagwise doctor` checks it.",
    ),
    (ConfigError, "Correct the settings and start the dashboard again. `lagwise doctor` checks them."),
)


@contextmanager
def boundary() -> Iterator[None]:
    """Run part of a page; whatever goes wrong in it is logged in full and shown as one line."""
    try:
        yield
    except LagwiseError as error:
        log.warning("the page shows an error: %s", error, extra=event(LogEvent.PAGE_ERROR))
        advice = next((text for kind, text in _WHAT_TO_DO if isinstance(error, kind)), "")
        st.error(
            f"{escaping.markdown(with_code(clean(str(error)), error.code))}\n\n{advice}".strip(),
            icon=":material/error:",
        )
    except Exception:
        reference = token_hex(3)
        log.exception("a page failed (reference %s)", reference, extra=event(LogEvent.DEFECT, reference=reference))
        st.error(
            "Something went wrong in the dashboard itself. The rest of Lagwise is not affected: collection, analysis "
            f"and alerts run on. The dashboard's log has the details under the reference `{reference}`; please report "
            "it.",
            icon=":material/error:",
        )
