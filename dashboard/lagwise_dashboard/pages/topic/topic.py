"""One topic: who reads it, whether they read it before retention deletes it, its write rate, and its partitions."""

import pyarrow as pa
import streamlit as st

from lagwise.domain import humanise
from lagwise.links import parameters
from lagwise_dashboard import address, context, escaping, plot_theme
from lagwise_dashboard.cache import ask
from lagwise_dashboard.pages.topic import reader_table, topic_partitions, topic_verdict
from lagwise_dashboard.queries import topic as queries
from lagwise_dashboard.queries.listing import FIRST_PAGE
from lagwise_dashboard.widgets import chooser, empty_page, page, partition_names, time_range
from lagwise_dashboard.widgets.time_range import TimeRange


def body() -> None:
    now = context.now()
    fresh = empty_page.fresh_data(now)
    if fresh is None or fresh.as_of is None:
        return
    if not _topic:
        chooser.a_topic("Choose a topic.")
        return
    cluster = chooser.cluster_of(queries.clusters_of, _topic)
    readers = ask(queries.readers, cluster, _topic, FIRST_PAGE.all_rows)
    result = ask(queries.settings, cluster, _topic)
    if not readers and result is None:
        _unknown()
        return
    as_of = next((v.at for v in fresh.verdicts if v.name == cluster and v.at), fresh.as_of)
    min_isr = result["min_isr"] if result else None
    totals = ask(queries.totals, cluster, _topic, as_of, min_isr)
    topic_verdict.show(result, readers.rows, totals, now)
    reader_table.show(cluster, _topic, result, partition_names.of(cluster, [_topic], as_of))
    st.subheader("Records written per second", anchor=False)
    span = time_range.choose(now)
    _chart(ask(queries.written, cluster, _topic, span.since, span.until), span)
    topic_partitions.show(cluster, _topic, as_of, min_isr, totals, now)


def _unknown() -> None:
    where = f" in the cluster **{escaping.markdown(_cluster)}**" if _cluster else ""
    st.warning(
        f"**No watched group reads a topic “{escaping.markdown(_topic)}”{where}.** Lagwise watches topics that groups "
        "read. It may have been deleted, or the address has a typo.",
        icon=":material/search_off:",
    )
    chooser.a_topic("Known topics:")


def _chart(result: pa.Table, span: TimeRange) -> None:
    if result.num_rows == 0:
        st.info(f"The write rate {span.words} is unknown.", icon=":material/timeline:")
        return
    made = plot_theme.figure(height=230, zoom=f"{_cluster}/{_topic}/{span.name}")
    points = plot_theme.with_gaps(result)
    at, rates = points["at"], points["rate_per_second"]
    made.add_traces(plot_theme.areas(at, rates, "rgba(217,119,6,0.12)"))
    made.add_trace(
        plot_theme.packed_line(
            at, rates, name="written", line={"color": plot_theme.PRODUCED, "width": 1.8},
            customdata=[humanise.rate(rate) for rate in rates],
            hovertemplate="%{customdata}/s<extra>written</extra>", showlegend=False,
        )
    )  # fmt: skip
    made.update_xaxes(range=[time_range.axis_start(span, at[0]), span.until])
    made.update_yaxes(ticksuffix=" /s")
    time_range.chart(made, name="topic_written", alt="Records written to the topic per second over time")


_cluster, _topic = address.get(parameters.CLUSTER), address.get(parameters.TOPIC)
page.show(escaping.markdown(_topic) if _topic else "Topic", body, tab=escaping.visible(_topic) or None)
