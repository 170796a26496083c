"""The brokers of each cluster, and what endangers the records and committed offsets of all its groups."""

from collections.abc import Sequence
from datetime import datetime

import streamlit as st

from lagwise.domain.cluster_findings import cluster_findings
from lagwise_dashboard import tables
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.widgets import grid


def findings(samples: Sequence[Row]) -> None:
    """What the newest sample of each cluster shows, if anything."""
    found = [(row["cluster"], finding) for row in samples for finding in cluster_findings(row) or ()]
    if not found:
        return
    st.subheader("Findings on clusters", anchor=False)
    columns = [
        tables.text("Cluster", [cluster for cluster, _ in found]),
        tables.text("Finding", [finding.kind.value.replace("_", " ") for _, finding in found]),
        tables.text("What was found", [finding.sentence for _, finding in found], width=420, wraps=True),
        tables.text("What to do", [finding.remedy for _, finding in found], width=320, wraps=True),
    ]
    grid.show(columns, name="cluster_findings", label="Findings on clusters, the most urgent first", visible_rows=10)


def brokers(samples: Sequence[Row], now: datetime) -> None:
    """The brokers that the newest sample of each cluster lists."""
    rows = [(sample, broker) for sample in samples for broker in sample["brokers"] or ()]
    if not rows:
        return
    st.subheader("Brokers", anchor=False)
    columns = tables.without_empty(
        [
            tables.text("Cluster", [sample["cluster"] for sample, _ in rows]),
            tables.text("Broker", [_name(broker) for _, broker in rows]),
            tables.text("Rack", [broker["rack"] for _, broker in rows]),
            tables.share("Disk used", [broker["disk_used"] for _, broker in rows], places=0),
            tables.duration("Clock off by", [_clock_off(broker) for _, broker in rows]).with_help(
                "How far the clock differs from the collector's. Of Kafka's brokers only the active controller reports "
                "its time."
            ),
            tables.ago("Gone", [broker["gone_at"] for _, broker in rows], now),
        ],
        "Rack",
        "Disk used",
        "Clock off by",
        "Gone",
    )
    grid.show(columns, name="brokers", label="Brokers of each cluster", visible_rows=10)


def _name(broker: Row) -> str:
    return broker["name"] if broker["role"] == "broker" else f"{broker['name']} ({broker['role']})"


def _clock_off(broker: Row) -> float | None:
    ahead = broker["clock_ahead_seconds"]
    return None if ahead is None else abs(ahead)


def offset_replicas(sample: Row) -> str | None:
    """On how many brokers Kafka keeps committed offsets."""
    replicas, least = sample.get("offsets_topic_replicas"), sample.get("offsets_topic_min_isr")
    return None if replicas is None else f"{replicas}" if least is None else f"{replicas}, min ISR {least}"
