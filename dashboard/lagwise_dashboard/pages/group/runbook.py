"""The link to what the reader's own people wrote down for such a case."""

from urllib.parse import quote

from lagwise_dashboard.queries.base import Row


def address(template: str | None, row: Row) -> str | None:
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
