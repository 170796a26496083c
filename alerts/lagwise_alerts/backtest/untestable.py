"""Which rules cannot be backtested on a history, because it lacks what their conditions need."""

from collections.abc import Set

from lagwise_alerts.model import AlertKind
from lagwise_alerts.rules.rule_file import Rule, RuleBook

#: Conditions on numbers that a history may lack, by their key in the file of rules.
LOSS_AHEAD = "seconds_to_loss_below"
CATCHING_UP = "seconds_to_catch_up_above"


def untestable_rules(book: RuleBook, kinds: Set[AlertKind], numbers: Set[str]) -> dict[str, str]:
    """What the history lacks, by the name of the rule. ``kinds`` and ``numbers`` are what it holds."""
    found = {rule.name: _missing(rule, kinds, numbers) for rule in book.rules}
    return {name: missing for name, missing in found.items() if missing}


def _missing(rule: Rule, kinds: Set[AlertKind], numbers: Set[str]) -> str:
    asked = {LOSS_AHEAD: rule.when.seconds_to_loss_below, CATCHING_UP: rule.when.seconds_to_catch_up_above}
    missing = sorted(kind.value for kind in rule.when.kinds - kinds)
    missing += [name for name, limit in asked.items() if limit is not None and name not in numbers]
    return ", ".join(missing)
