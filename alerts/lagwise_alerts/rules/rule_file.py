"""The rules: which conditions are worth telling, how urgently, after how long, and to whom.

One YAML file, checked as strictly as the settings: an unknown key or a bad value is refused with its path and what is
allowed there. The rules that come with Lagwise are in ``default_rules.yaml`` beside this module.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from lagwise.config import NameFilter
from lagwise.config.errors import describe
from lagwise.config.values import Name
from lagwise.platform.durations import parse_duration
from lagwise.platform.errors import ConfigError
from lagwise_alerts.model import AlertKind, AlertSubject, Severity
from lagwise_alerts.rules.owners import Owner, owner_of
from lagwise_alerts.rules.rule_condition import Duration, RuleCondition, Strict

#: The shortest interval at which an alert may be told again.
_SHORTEST_REPEAT_SECONDS = 60.0


def _parse_repeat(value: object) -> float:
    seconds = math.inf if value == "never" else parse_duration(value)
    if seconds < _SHORTEST_REPEAT_SECONDS:
        raise ValueError(f"{value!r} is too often: an alert is told again after 1m at the earliest, or never")
    return seconds


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
    return pattern


Repeat = Annotated[float, BeforeValidator(_parse_repeat)]
Pattern = Annotated[str, AfterValidator(_compiles)]


class Rule(Strict):
    """One thing that is worth telling."""

    name: Name
    """How the rule is called in alerts and pages."""
    when: RuleCondition
    """What it looks for."""
    severity: Severity
    """`page` wakes somebody, `warn` can wait for the day, `info` is for the record."""
    for_seconds: Annotated[Duration, Field(alias="for")] = 0.0
    """How long it must hold, in the time of the data, before anybody is told."""
    keep_firing_seconds: Annotated[Duration, Field(alias="keep_firing_for")] = 60.0
    """How long all must be well again, in the time of the data, before the end is told."""
    only_if_seen_active: bool = False
    """Leave out groups that nobody has seen alive since Lagwise watches: abandoned ones have old lag forever."""
    clusters: NameFilter = NameFilter()
    """Clusters it applies to: regular expressions on the whole name."""
    groups: NameFilter = NameFilter()
    """Groups it applies to: regular expressions on the whole name."""
    topics: NameFilter = NameFilter()
    """Groups it applies to by what they read, of which one topic is enough: regular expressions on the whole name."""
    labels: dict[Name, Pattern] = Field(default_factory=dict)
    """Groups it applies to: regular expressions on the whole value of these labels, which their owners give them."""
    channels: tuple[str, ...] | None = None
    """Names of the channels that are told; null is those of the group's owner, or all."""
    repeat_every: Repeat | None = None
    """After how long it is told again while it lasts, or `never`; null is what the file says of its severity."""

    @model_validator(mode="after")
    def _fits_together(self) -> "Rule":
        chosen = self.labels or self.groups != NameFilter() or self.topics != NameFilter()
        if self.when.stale and (self.only_if_seen_active or chosen):
            raise ValueError("a rule about stale data has no groups, no topics, no labels and no only_if_seen_active")
        if self.when.stale == AlertKind.ANALYSIS.value and self.clusters != NameFilter():
            raise ValueError("a rule about the analysis has no clusters: there is one analysis for all of them")
        return self

    def applies_to(self, subject: AlertSubject, labels: Mapping[str, str], topics: Collection[str]) -> bool:
        """Whether it speaks of this subject, which reads ``topics`` and whose owner gives it ``labels``."""
        return (
            self.clusters.selects(subject.cluster or "")
            and self.groups.selects(subject.group or "")
            and (self.topics == NameFilter() or any(self.topics.selects(topic) for topic in topics))
            and all(name in labels and re.fullmatch(p, labels[name], re.DOTALL) for name, p in self.labels.items())
        )


class Flapping(Strict):
    """When an alert that comes and goes is told as one that flaps: then it ends only after a long calm."""

    times: Annotated[int, Field(ge=2)] = 3
    """How often it must begin …"""
    within: Duration = 3600.0
    """… within this time."""
    calm: Duration = 1800.0
    """How long all must be well, in the time of the data, before the end of one that flaps is told."""


class RuleFile(Strict):
    """A file of rules. Where several apply, the loudest wins, and among equals the one that stands first."""

    version: Literal[1] = 1
    """Version of this format."""
    owners: tuple[Owner, ...] = ()
    """Whose the groups are."""
    repeat_every: dict[Severity, Repeat] = Field(default_factory=dict)
    """After how long alerts of a severity are told again while they last; those that are not named never are."""
    flapping: Flapping | None = Flapping()
    """What counts as flapping; null is nothing."""
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
    """The rules in force, whose groups are whose, and the channels there are."""

    rules: tuple[Rule, ...]
    channels: tuple[str, ...] = ()
    owners: tuple[Owner, ...] = ()
    repeat_seconds: Mapping[Severity, float] = field(default_factory=dict)
    flapping: Flapping | None = None

    def rank(self, name: str, severity: Severity) -> tuple[int, int]:
        """How a rule ranks, the worst lowest: by severity, then by position. A rule that is gone comes last."""
        positions = [i for i, rule in enumerate(self.rules) if rule.name == name]
        return (severity.rank, positions[0] if positions else len(self.rules))

    def labels_of(self, subject: AlertSubject) -> Mapping[str, str]:
        """The labels of the subject's owner."""
        owner = self._owner_of(subject)
        return {} if owner is None else owner.all_labels

    def channels_of(self, rule: Rule, subject: AlertSubject) -> tuple[str, ...]:
        """The channels a rule tells of a subject: its own, or its owner's, or all."""
        if rule.channels is not None:
            return rule.channels
        owner = self._owner_of(subject)
        return self.channels if owner is None or owner.channels is None else owner.channels

    def repeat_seconds_of(self, rule: Rule) -> float:
        """After how long an alert of this rule is told again."""
        return rule.repeat_every or self.repeat_seconds.get(rule.severity, math.inf)

    def starts_that_count(self, starts: Sequence[datetime], now: datetime) -> tuple[datetime, ...]:
        """The beginnings of an alert that still count, at a moment, for whether it flaps."""
        within_seconds = 0.0 if self.flapping is None else self.flapping.within
        return tuple(at for at in starts if (now - at).total_seconds() < within_seconds)

    def _owner_of(self, subject: AlertSubject) -> Owner | None:
        if subject.cluster is None or subject.group is None:
            return None
        return owner_of(self.owners, subject.cluster, subject.group)


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
    parts: tuple[tuple[str, Sequence[Rule | Owner]], ...] = (("owners", file.owners), ("rules", file.rules))
    unknown = [
        f"  {part}.{i}.channels.{j}: the settings have no channel {name!r}; known: {', '.join(channels) or 'none'}"
        for part, entries in parts
        for i, entry in enumerate(entries)
        for j, name in enumerate(entry.channels or ())
        if name not in channels
    ]
    if unknown:
        raise ConfigError(f"the alert rules in {where} cannot be used:\n" + "\n".join(unknown))
    return RuleBook(file.rules, tuple(channels), file.owners, file.repeat_every, file.flapping)


def _read(path: Path | None) -> dict[str, Any]:
    try:
        if path is None:
            text = resources.files("lagwise_alerts.rules").joinpath("default_rules.yaml").read_text(encoding="utf-8")
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
