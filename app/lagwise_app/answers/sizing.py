"""How many threads, nodes and partitions it takes, as `lagwise size` says it: for a group with what is known of it, or
for any workload."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from datetime import datetime
from typing import Any

from lagwise.config.model import CapacitySettings
from lagwise.config.visibility import Visibility
from lagwise.domain.humanise import plural
from lagwise.domain.sizing.workload import DEFAULT_TARGET_UTILISATION, Unit, Workload
from lagwise.platform.logs import clean
from lagwise.tables.store import Lake
from lagwise_app.answers.capacity_models import SizingAnswer, SizingInputs
from lagwise_app.answers.forecasts import verdicts
from lagwise_app.answers.groups import Row
from lagwise_app.size.answer import as_document
from lagwise_app.size.bad_question import BadQuestion
from lagwise_app.size.group_capacity import load_measured_group
from lagwise_app.size.question import SizingQuestion, answer

_INPUTS = ("seconds_per_message", *(field.name for field in fields(Workload)))
_DEFAULTS = {
    **dict.fromkeys(_INPUTS),
    **{field.name: field.default for field in fields(Workload) if field.default is not MISSING},
    "unit": Unit.MEMBER,
}
#: What the API calls each input, the group and the horizon.
CALLED_BY_API = {name: name for name in (*_INPUTS, "group", "horizon_seconds")}
#: The same of the assistants' tool.
CALLED_BY_TOOL = {**{name: f"inputs.{name}" for name in _INPUTS}, "group": "group", "horizon_seconds": "horizon_days"}
#: So many topics are named where one has to be chosen.
_NAMED_TOPICS = 10


@dataclass(frozen=True, slots=True)
class AboutGroup:
    """The group that is sized, on its only topic or the one named."""

    cluster: str
    group: str
    topic: str | None = None


def sizing(
    lake: Lake,
    settings: CapacitySettings,
    about: AboutGroup | None,
    inputs: SizingInputs,
    horizon_seconds: float | None,
    visibility: Visibility,
    now: datetime,
    *,
    called: Mapping[str, str] = CALLED_BY_API,
) -> SizingAnswer:
    """The advice; refusals name inputs as they are ``called``. Raises BadQuestion, UnknownGroup, CapacityUnknown and
    LakeError."""
    given = inputs.model_dump(exclude_none=True)
    question = SizingQuestion({**_DEFAULTS, **given}, set(given), called)
    question.check()
    target, known = given.get("target_utilisation", DEFAULT_TARGET_UTILISATION), None
    if about is None:
        question.check_alone(horizon_seconds)
    else:
        target = settings.target_utilisation
        known = load_measured_group(
            lake,
            _verdict(lake, about, visibility),
            horizon_seconds=horizon_seconds,
            objective_seconds=inputs.objective_seconds,
            size_by=question.size_by(settings.size_by),
            target_utilisation=target,
            now=now,
        )
    sources = {name: "given" if name in given else "default" for name in _INPUTS}
    try:
        found = answer(question, known, sources, target_utilisation=target, now=now)
    except BadQuestion as error:
        raise BadQuestion(str(error) if error.called is None else f"{error.called} {error}") from None
    document: dict[str, Any] = as_document(found.report, found.values, found.load_test)
    return SizingAnswer.model_validate(document)


def _verdict(lake: Lake, about: AboutGroup, visibility: Visibility) -> Row:
    found = verdicts(lake, about.cluster, about.group, about.topic, visibility)
    if not found:
        raise BadQuestion(
            "the capacity of this group is not known yet: the analysis works it out a few minutes after it first sees "
            "a group. Without a group, give all numbers"
        )
    if len(found) > 1:
        named = ", ".join(repr(clean(row["topic"])) for row in found[:_NAMED_TOPICS])
        more = f" and {plural(len(found) - _NAMED_TOPICS, 'other topic')}" if len(found) > _NAMED_TOPICS else ""
        raise BadQuestion(f"this group reads {named}{more}: name one as topic")
    return found[0]
