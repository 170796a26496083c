"""What a page says when there is nothing to show: why, and what to do about it."""

from collections.abc import Callable
from datetime import datetime

import streamlit as st

from lagwise.config import RocketmqCluster
from lagwise.domain import humanise
from lagwise.links.first_commands import shell_word
from lagwise_dashboard import context, escaping, visibility
from lagwise_dashboard.widgets import collection_errors, freshness
from lagwise_dashboard.widgets.freshness import Freshness


def fresh_data(now: datetime, *, judged: bool = True) -> Freshness | None:
    """Draw the age of the data, and return it. Where there is no data, draw why and return None.

    Without ``judged``, samples are enough: the page needs no verdicts.
    """
    fresh = freshness.read(now)
    freshness.strip(fresh)
    if fresh.nothing_collected:
        _nothing_collected(fresh)
    elif judged and fresh.as_of is None:
        _nothing_judged(fresh)
    else:
        return fresh
    return None


def _nothing_collected(fresh: Freshness) -> None:
    """No sample of any cluster is in the lake, or none that could read anything. A new start
    is explained by :func:`freshness.strip` alone."""
    if fresh.starting:
        return
    config = context.config()
    unreadable = [source for source in fresh.collections if source.trouble is not None]
    for source in unreadable:
        st.error(
            f"**The cluster {escaping.markdown(source.name)} cannot be read**{freshness.why(source)}. "
            f"{collection_errors.advice(source.trouble.kind if source.trouble else '')}",
            icon=":material/link_off:",
        )
    if unreadable:
        st.caption("The collector keeps trying. `lagwise doctor` checks the access to the cluster step by step.")
        return
    st.info(
        "**Nothing has been collected yet.** Start the collector against your cluster, or run the demo; the first "
        "verdicts appear here about a minute later.",
        icon=":material/hourglass_empty:",
    )
    first = next(iter(visibility.clusters()), None)
    settled = "" if isinstance(first, RocketmqCluster) else f" --bootstrap {first.bootstrap if first else 'HOST:PORT'}"
    st.code(f"lagwise up{settled}\nlagwise demo", language=None)
    st.caption(
        "Is it running already? `lagwise doctor` checks access to the cluster and to the lake. This "
        "dashboard reads the lake"
    )
    st.code(config.lake_uri, language=None)


def _nothing_judged(fresh: Freshness) -> None:
    """There are samples, but the analysis has not finished a round over them. A new start
    is explained by :func:`freshness.strip` alone."""
    if fresh.starting:
        return
    collected = max((s.at for s in fresh.collections if s.at), default=None)
    st.info(
        f"**Collected, not analysed yet.** The newest sample is {humanise.since(collected, fresh.now)} old; the "
        "analysis has not written a verdict. After a start it takes half a minute. If this persists, check the log of "
        f"the analysis ({escaping.markdown(str(context.config().state / 'logs'))}), or run it alone to see its output:",
        icon=":material/hourglass_top:",
    )
    st.code(f"lagwise analyze --once --data {shell_word(context.config().data)}", language=None)


def no_groups() -> None:
    """The clusters were collected and hold no group that is watched."""
    st.info(
        "**No consumer groups.** The watched clusters have none, or the patterns under `clusters.groups` in the "
        "settings exclude all of them.",
        icon=":material/group_off:",
    )


def no_match(clear: Callable[[], None]) -> None:
    """There are groups, but none that fits the filters."""
    st.info(
        "**No group matches.** Change the search or the filters.",
        icon=":material/search_off:",
    )
    st.button("Clear the filters", on_click=clear, icon=":material/filter_alt_off:")
