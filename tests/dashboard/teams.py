"""Two teams over the groups of the stories: what each may see, and the names by which a leak to one of them shows."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import Engine

from lagwise_alerts.operate import Matcher, Operator, Via, actions, saved_views
from lagwise_alerts.outbox.database import open_engine
from tests.dashboard import alerts, lakes, planning
from tests.dashboard.lakes import Scene
from tests.dashboard.serving import free_port, served
from tests.dashboard.signed_in import write_auth_file
from tests.dashboard.stories import GROUPS_OF_THE_DEMO

#: Each team's groups, all in the cluster prod.
MONEY = ("payments-settlement", "invoice-mailer", "billing-export")
SHOP = ("orders-fulfilment", "checkout", "inventory-sync")
TEAMS = [
    {"name": "money", "members": ["money"], "clusters": {"include": ["prod"]}, "groups": {"include": list(MONEY)}},
    {
        "name": "shop",
        "members": ["shop"],
        "clusters": {"include": ["prod"]},
        "groups": {"include": list(SHOP)},
        "may_operate": True,
    },
]
STORIES = {(story.cluster, story.group): story for story in GROUPS_OF_THE_DEMO}
ALL = tuple(group for _, group in STORIES)
#: A hidden group and a group of the team money, each with an alert, a silence and a saved view.
HIDDEN, OWN = "fraud-scoring", "payments-settlement"


@contextmanager
def served_to_teams(folder: Path, *provider: str) -> Iterator[str]:
    """The address of a dashboard over what :func:`_write_to` writes: the claim "root" operates, "boss" looks at
    everything, the teams at theirs. The ``provider`` is the address of the one that signs in, if anybody does."""
    port, auth_file = free_port(), folder / "auth.toml"
    _write_to(folder, datetime.now(UTC))
    write_auth_file(auth_file, f"http://127.0.0.1:{port}", *provider)
    sign_in = {
        "auth_file": str(auth_file),
        "claim": "groups",
        "operators": ["root"],
        "viewers": ["boss"],
        "teams": TEAMS,
    }
    with served(folder, port=port, sign_in=sign_in) as address:
        yield address


def _write_to(folder: Path, now: datetime) -> None:
    """A lake with plans, samples with errors about a hidden group, alerts, a shared incident, silences, saved views and
    an operator's actions."""
    error = {"kind": "group_not_authorized", "count": 3, "example": f"group {HIDDEN}: not authorized"}
    planning.write(lakes.write_to(folder, Scene(now, promised=timedelta(hours=10), errors={"prod": [error]})), now)
    alerts.write_to(folder, now)
    alerts.gather(folder)
    engine, by = open_engine(f"sqlite:///{folder / 'lagwise.db'}"), Operator("root", Via.CLI)
    for group in (HIDDEN, OWN):
        _silence(engine, group, by, now)
        saved_views.save(engine, f"all of {group}", "group", f"cluster=prod&group={group}", by=by, now=now)
    engine.dispose()


def _silence(engine: Engine, group: str, by: Operator, now: datetime) -> None:
    its = Matcher(cluster="prod", group=group)
    actions.silence(
        engine, its, starts_at=now, ends_at=now + timedelta(hours=9), comment="nightly batch", by=by, now=now
    )


def names_of(groups: tuple[str, ...]) -> set[str]:
    """The names of these groups, and of the topics that they read."""
    return {name for (_, group), story in STORIES.items() if group in groups for name in (group, story.topic)}


def hidden_from(groups: tuple[str, ...]) -> set[str]:
    """Names that a reader of these groups must not read. Words that a visible sentence says for itself are none."""
    own = " ".join([*names_of(groups), *(s.sentence for (_, g), s in STORIES.items() if g in groups)])
    return {name for name in names_of(ALL) - names_of(groups) if name not in own and len(name) > 7}


def members_of(groups: tuple[str, ...]) -> set[str]:
    """How the client ids of the members of these groups begin, and the networks of their hosts."""
    members = [story.member(0) for (_, group), story in STORIES.items() if group in groups]
    return {
        start for client, host in members for start in (client.removesuffix("0"), host.strip("/").removesuffix("11"))
    }


def traces_hidden_from(groups: tuple[str, ...]) -> set[str]:
    """Whatever shows that a reader of these groups was sent something of others: groups, topics, members, hosts and
    the cluster of which they see nothing."""
    others = tuple(group for group in ALL if group not in groups)
    return hidden_from(groups) | (members_of(others) - members_of(groups)) | {"staging"}
