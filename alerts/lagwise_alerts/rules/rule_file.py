"""The file of alert rules: which conditions raise an alert, how urgently, after how long, and on which channels.

One YAML file, checked as strictly as the settings: an unknown key or an invalid value is rejected with its path and
what is allowed there. The default rules are in ``default_rules.yaml`` in this folder.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from lagwise.config import NameFilter
from lagwise.config.errors import describe
from lagwise.config.values import Name
from lagwise.platform.durations import parse_duration
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import ConfigError
from lagwise_alerts.model import AlertKind, AlertSubject, Severity
from lagwise_alerts.rules.flapping import Flapping
from lagwise_alerts.rules.owners import Owner, owner_of
from lagwise_alerts.rules.rule_condition import Duration, RuleCondition, Strict
from lagwise_alerts.rules.shared_incidents import SharedIncidents

#: The shortest interval at which a notification may be repeated.
_SHORTEST_REPEAT_SECONDS = 60.0


def _parse_repeat(value: object) -> float:
    seconds = math.inf if value == "never" else parse_duration(value)
    if seconds < _SHORTEST_REPEAT_SECONDS:
        raise ValueError(f"{value!r} is too short: use 1m or more, or never")
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
    """A condition that raises an alert, and how."""

    name: Name
    """Name of the rule in alerts and on pages."""
    when: RuleCondition
    """What it looks for."""
    severity: Severity
    """`page` wakes someone, `warn` can wait for the day, `info` is for the record."""
    for_seconds: Annotated[Duration, Field(alias="for")] = 0.0
    """How long the condition must hold, in the time of the data, before the alert fires."""
    keep_firing_seconds: Annotated[Duration, Field(alias="keep_firing_for")] = 60.0
    """How long the condition must not hold, in the time of the data, before the alert ends."""
    only_if_seen_active: bool = False
    """Skip groups that Lagwise has never seen active: abandoned groups keep their old lag forever."""
    clusters: NameFilter = NameFilter()
    """Clusters it applies to: regular expressions on the whole name."""
    groups: NameFilter = NameFilter()
    """Groups it applies to: regular expressions on the whole name."""
    topics: NameFilter = NameFilter()
    """Groups it applies to, by the topics they read; one topic is enough: regular expressions on the whole name."""
    labels: dict[Name, Pattern] = Field(default_factory=dict)
    """Groups it applies to, by the labels of their owners: regular expressions on the whole value."""
    channels: tuple[str, ...] | None = None
    """Names of the channels to notify; null is the channels of the group's owner, or all."""
    repeat_every: Repeat | None = None
    """How often the notification is repeated while the alert lasts, or `never`; null is as its severity says."""

    @model_validator(mode="after")
    def _fits_together(self) -> "Rule":
        chosen = self.labels or self.groups != NameFilter() or self.topics != NameFilter()
        if (self.when.stale or self.when.cluster_findings) and (self.only_if_seen_active or chosen):
            about = "stale data" if self.when.stale else "a cluster"
            raise ValueError(f"a rule about {about} has no groups, no topics, no labels and no only_if_seen_active")
        if self.when.stale == AlertKind.ANALYSIS.value and self.clusters != NameFilter():
            raise ValueError("a rule about the analysis has no clusters: there is one analysis for all of them")
        return self

    def applies_to(self, subject: AlertSubject, labels: Mapping[str, str], topics: Collection[str]) -> bool:
        """Whether it applies to a subject that reads ``topics`` and has ``labels`` from its owner."""
        return (
            self.clusters.selects(subject.cluster or "")
            and self.groups.selects(subject.group or "")
            and (self.topics == NameFilter() or any(self.topics.selects(topic) for topic in topics))
            and all(name in labels and re.fullmatch(p, labels[name], re.DOTALL) for name, p in self.labels.items())
        )


class RuleFile(Strict):
    """A file of rules. Where several rules match, the loudest wins; among equally loud ones the first."""

    version: Literal[1] = 1
    """Version of this format."""
    owners: tuple[Owner, ...] = ()
    """Owners of the groups."""
    repeat_every: dict[Severity, Repeat] = Field(default_factory=dict)
    """How often notifications of a severity are repeated while the alert lasts; without an interval never."""
    flapping: Flapping | None = Flapping()
    """What counts as flapping; null is nothing."""
    shared_incidents: SharedIncidents | None = SharedIncidents()
    """When alerts of several groups are one shared incident; null is never."""
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
    """The rules in use, the owners of groups, and the names of all channels."""

    rules: tuple[Rule, ...]
    channels: tuple[str, ...] = ()
    owners: tuple[Owner, ...] = ()
    repeat_seconds: Mapping[Severity, float] = field(default_factory=dict)
    flapping: Flapping | None = None
    shared_incidents: SharedIncidents | None = None

    def rank(self, name: str, severity: Severity) -> tuple[int, int]:
        """Rank of a rule, the worst lowest: by severity, then by position. A removed rule comes last."""
        positions = [i for i, rule in enumerate(self.rules) if rule.name == name]
        return (severity.rank, positions[0] if positions else len(self.rules))

    def labels_of(self, subject: AlertSubject) -> Mapping[str, str]:
        """The labels of the subject's owner."""
        owner = self._owner_of(subject)
        return {} if owner is None else owner.all_labels

    def channels_of(self, rule: Rule, subject: AlertSubject) -> tuple[str, ...]:
        """The channels to notify of a subject: those of the rule, or of the owner, or all."""
        if rule.channels is not None:
            return rule.channels
        owner = self._owner_of(subject)
        return self.channels if owner is None or owner.channels is None else owner.channels

    def downstream_of(self, subject: AlertSubject) -> str | None:
        """What the subject's owner says that it depends on."""
        owner = self._owner_of(subject)
        return None if owner is None else owner.downstream

    def repeat_seconds_of(self, rule: Rule) -> float:
        """After how long the notification of an alert of this rule is repeated."""
        return rule.repeat_every or self.repeat_seconds.get(rule.severity, math.inf)

    def _owner_of(self, subject: AlertSubject) -> Owner | None:
        if subject.cluster is None or subject.group is None:
            return None
        return owner_of(self.owners, subject.cluster, subject.group)


def load_rules(path: Path | None, channels: Sequence[str] = ()) -> RuleBook:
    """Read the rules from a file, or the default rules if ``path`` is None.

    ``channels`` are the names of the channels in the settings. Raises ConfigError; its message names every invalid
    key and what is allowed there.
    """
    where = str(path) if path else "the default rules"
    try:
        file = RuleFile.model_validate(_read_tree(path))
    except ValidationError as error:
        raise ConfigError(
            f"the alert rules in {where} cannot be used:\n" + describe(error, RuleFile),
            code=ErrorCode.ALERT_RULES_INVALID,
        ) from None
    parts: tuple[tuple[str, Sequence[Rule | Owner]], ...] = (("owners", file.owners), ("rules", file.rules))
    unknown = [
        f"  {part}.{i}.channels.{j}: the settings have no channel {name!r}; known: {', '.join(channels) or 'none'}"
        for part, entries in parts
        for i, entry in enumerate(entries)
        for j, name in enumerate(entry.channels or ())
        if name not in channels
    ]
    if unknown:
        raise ConfigError(
            f"the alert rules in {where} cannot be used:\n" + "\n".join(unknown), code=ErrorCode.ALERT_RULES_INVALID
        )
    return RuleBook(
        rules=file.rules,
        channels=tuple(channels),
        owners=file.owners,
        repeat_seconds=file.repeat_every,
        flapping=file.flapping,
        shared_incidents=file.shared_incidents,
    )


def _read_tree(path: Path | None) -> dict[str, Any]:
    try:
        if path is None:
            text = resources.files("lagwise_alerts.rules").joinpath("default_rules.yaml").read_text(encoding="utf-8")
        else:
            text = path.expanduser().read_text(encoding="utf-8")
        tree = yaml.safe_load(text)
    except OSError as error:
        raise ConfigError(
            f"cannot read the alert rules {path}: {error.strerror}", code=ErrorCode.ALERT_RULES_INVALID
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the alert rules {path} are not YAML: {' '.join(str(error).split())}", code=ErrorCode.ALERT_RULES_INVALID
        ) from error
    if not isinstance(tree, dict):
        raise ConfigError(
            f"the alert rules {path} must be keys and values: version and rules", code=ErrorCode.ALERT_RULES_INVALID
        )
    return tree
