"""The rules: which conditions are worth telling, how urgently, after how long, and to whom.

One YAML file, checked as strictly as the settings: an unknown key or a bad value is refused with its path and what is
allowed there. The rules that come with Lagwise are in ``default_rules.yaml`` beside this module.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from lagwise.alerts.durations import parse_duration
from lagwise.alerts.model import Kind, Severity
from lagwise.config import GroupSelection
from lagwise.config.errors import describe
from lagwise.config.values import Name
from lagwise.domain.findings import FindingKind
from lagwise.domain.vocabulary import Status, UnknownReason
from lagwise.errors import ConfigError

Duration = Annotated[float, BeforeValidator(parse_duration)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class When(_Strict):
    """What a rule looks for: statuses of a group, findings beside it, or the monitor itself being late."""

    statuses: tuple[Status, ...] = ()
    """The group has one of these statuses."""
    unknown_reasons: tuple[UnknownReason, ...] = ()
    """Of the groups that are `unknown`, only those for one of these reasons; empty is any reason."""
    unread: bool | None = None
    """Of the groups with one of the statuses, only those with unread records (`true`; a lag that is not known counts as
    some) or without any (`false`); null is both."""
    findings: tuple[FindingKind, ...] = ()
    """Instead of statuses: one of these findings stands beside the group's status, whatever that is."""
    stale: Literal["collection", "analysis"] | None = None
    """Instead of statuses: no data has come from the collector of a cluster, or from the analysis …"""
    older_than: Duration | None = None
    """… for longer than this (and never less than three of the intervals they work at)."""

    @model_validator(mode="after")
    def _one_or_the_other(self) -> "When":
        if [bool(self.statuses), bool(self.findings), bool(self.stale)].count(True) != 1:
            raise ValueError(
                "give either statuses, a list of status words, findings, a list of kinds, or stale: collection or "
                "stale: analysis"
            )
        if bool(self.stale) != (self.older_than is not None):
            raise ValueError("stale and older_than go together, as in {stale: collection, older_than: 2m}")
        if self.unknown_reasons and Status.UNKNOWN not in self.statuses:
            raise ValueError("unknown_reasons needs the status unknown among the statuses")
        if self.unread is not None and not self.statuses:
            raise ValueError("unread goes with statuses: it tells groups of one status apart")
        return self


class Rule(_Strict):
    """One thing that is worth telling."""

    name: Name
    """How the rule is called in alerts and pages."""
    when: When
    """What it looks for."""
    severity: Severity
    """`page` wakes somebody, `warn` can wait for the day, `info` is for the record."""
    for_seconds: Annotated[Duration, Field(alias="for")] = 0.0
    """How long it must hold, in the time of the data, before anybody is told."""
    keep_firing_seconds: Annotated[Duration, Field(alias="keep_firing_for")] = 60.0
    """How long all must be well again, in the time of the data, before the end is told."""
    only_if_seen_active: bool = False
    """Leave out groups that nobody has seen alive since Lagwise watches: abandoned ones have old lag forever."""
    clusters: GroupSelection = GroupSelection()
    """Clusters it applies to: regular expressions on the whole name."""
    groups: GroupSelection = GroupSelection()
    """Groups it applies to: regular expressions on the whole name."""
    channels: tuple[str, ...] | None = None
    """Names of the channels that are told; null is all."""

    @model_validator(mode="after")
    def _fits_together(self) -> "Rule":
        if self.when.stale and (self.only_if_seen_active or self.groups != GroupSelection()):
            raise ValueError("a rule about stale data has no groups and no only_if_seen_active")
        if self.when.stale == Kind.ANALYSIS.value and self.clusters != GroupSelection():
            raise ValueError("a rule about the analysis has no clusters: there is one analysis for all of them")
        return self


class RuleFile(_Strict):
    """A file of rules. Where several apply, the loudest wins, and among equals the one that stands first."""

    version: Literal[1] = 1
    """Version of this format."""
    rules: tuple[Rule, ...]
    """The rules."""

    @model_validator(mode="after")
    def _names_are_unique(self) -> "RuleFile":
        twice = [name for name, count in Counter(r.name for r in self.rules).items() if count > 1]
        if twice:
            raise ValueError(f"rules: the name {twice[0]!r} is given twice")
        return self


@dataclass(frozen=True, slots=True)
class RuleBook:
    """The rules in force and the channels there are."""

    rules: tuple[Rule, ...]
    channels: tuple[str, ...] = ()

    def rank(self, name: str, severity: Severity) -> tuple[int, int]:
        """How a rule ranks, the worst lowest: by severity, then by position. A rule that is gone comes last."""
        positions = [i for i, rule in enumerate(self.rules) if rule.name == name]
        return (severity.rank, positions[0] if positions else len(self.rules))

    def channels_of(self, rule: Rule) -> tuple[str, ...]:
        """The channels a rule tells."""
        return self.channels if rule.channels is None else rule.channels


def load_rules(path: Path | None, channels: Sequence[str] = ()) -> RuleBook:
    """Read the rules from a file, or those that come with Lagwise if ``path`` is None.

    ``channels`` are the names of the channels in the settings. Raises ConfigError, whose message names every offending
    key and what it may be.
    """
    where = str(path) if path else "the rules that come with Lagwise"
    try:
        file = RuleFile.model_validate(_read(path))
    except ValidationError as error:
        raise ConfigError(f"the alert rules in {where} cannot be used:\n" + describe(error, RuleFile)) from None
    unknown = [
        f"  rules.{i}.channels.{j}: the settings have no channel {name!r}; known: {', '.join(channels) or 'none'}"
        for i, rule in enumerate(file.rules)
        for j, name in enumerate(rule.channels or ())
        if name not in channels
    ]
    if unknown:
        raise ConfigError(f"the alert rules in {where} cannot be used:\n" + "\n".join(unknown))
    return RuleBook(file.rules, tuple(channels))


def _read(path: Path | None) -> dict[str, Any]:
    try:
        if path is None:
            text = resources.files("lagwise.alerts").joinpath("default_rules.yaml").read_text(encoding="utf-8")
        else:
            text = path.expanduser().read_text(encoding="utf-8")
        tree = yaml.safe_load(text)
    except OSError as error:
        raise ConfigError(f"cannot read the alert rules {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"the alert rules {path} are not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(tree, dict):
        raise ConfigError(f"the alert rules {path} must be keys and values: version and rules")
    return tree
