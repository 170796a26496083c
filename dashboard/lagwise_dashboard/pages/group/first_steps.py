"""Commands to copy: what the system's own tools report about a group, and how they would repair it."""

from dataclasses import dataclass
from urllib.parse import quote

import streamlit as st

from lagwise.config import Config
from lagwise.links.first_commands import first_command, kafka_tool, mqadmin, option, rocketmq_named, shell_word
from lagwise_dashboard import context
from lagwise_dashboard.queries.base import Row


@dataclass(frozen=True, slots=True)
class Command:
    """A command and what it is for."""

    purpose: str
    text: str


def for_group(config: Config, row: Row) -> list[Command]:
    """Commands about the group of a row of `group_status`, the one to begin with first. All of them only read, the
    last one included (a dry run changes nothing)."""
    cluster, group, topic = row["cluster"], row["group"], row["worst_topic"]
    start = kafka_tool("kafka-consumer-groups", cluster, config.clusters)
    named = option("--group", group)
    rocketmq = rocketmq_named(cluster, config.clusters)
    if rocketmq is None:
        result = [
            Command("Offsets and lag of every partition, from the brokers", f"{start} --describe {named}"),
            Command("Members and what each of them owns", f"{start} --describe --members --verbose {named}"),
        ]
    else:
        connection = f"{mqadmin('consumerConnection', rocketmq)} {option('--consumerGroup', group)}"
        result = [
            Command("Offsets of every queue and who owns it, from brokers and members", _progress(config, row)),
            Command("Members and what they subscribe to", connection),
        ]
    result.append(
        Command(
            "The same verdict in the terminal",
            f"lagwise lag {option('--data', config.data)} {option('--cluster', cluster)} {_argument(group)}",
        )
    )
    first = first_command(
        cluster,
        group,
        config.clusters,
        status=row["status"],
        reason=row["reason"],
        loss_cause=row["loss_cause"],
        topic=topic,
        transaction_seconds=row["transaction_seconds"],
        stands_still=row["stands_still"],
    )
    purpose = "How long the topic keeps records"
    if first == "lagwise doctor":
        purpose = "What the cluster's account can read"
    elif "find-hanging" in first:
        purpose = "The hanging transaction and its producer; the same tool aborts it"
    known = next((c for c in result if c.text == first), Command(purpose, first))
    result = [known, *(c for c in result if c is not known)]
    if topic is not None and rocketmq is None:
        result.append(
            Command(
                "What skipping to the newest records would do. This is a dry run; with --execute it skips every "
                "unread record. The group must have no members",
                f"{start} {named} {option('--topic', topic)} --reset-offsets --to-latest --dry-run",
            )
        )
    return result


def _progress(config: Config, row: Row) -> str:
    return first_command(row["cluster"], row["group"], config.clusters)


def _argument(value: str) -> str:
    return f"-- {shell_word(value)}" if value.startswith("-") else shell_word(value)


def runbook_url(template: str | None, row: Row) -> str | None:
    """The runbook's address for the group of a row of `group_status`; None without a template.

    Names are strangers' input: they are quoted, so that none of them adds a path or a parameter of its own.
    """
    if template is None:
        return None
    values = {
        "cluster": row["cluster"],
        "group": row["group"],
        "topic": row["worst_topic"],
        "status": row["status"],
        "reason": row["reason"],
    }
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", quote(value or "", safe=""))
    return template


def show(row: Row) -> None:
    """The commands, each below what it is for."""
    st.subheader("Commands", anchor=False)
    st.caption(
        "Inspect the group with the system's own tools and plan a repair. None of these commands changes anything as "
        "written."
    )
    for command in for_group(context.config(), row):
        st.caption(f"{command.purpose}:")
        st.code(command.text, language=None, wrap_lines=True)
