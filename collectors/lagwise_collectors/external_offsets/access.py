"""What reading offsets elsewhere needs, tried source by source, for ``lagwise doctor``."""

from collections.abc import Sequence

from lagwise.config import ExternalOffsets
from lagwise.domain.humanise import plural
from lagwise_collectors.external_offsets.sources import Sources
from lagwise_collectors.protocol import Check, ErrorTally

_ADVICE = {
    "elsewhere_timeout": "see why it takes so long, or raise the source's timeout_seconds",
    "elsewhere_unreachable": "check the address, and whether it runs",
    "elsewhere_refused": "check the secret and the rights of the account",
    "elsewhere_missing": "check the path, and whether it holds what its type says",
    "elsewhere_malformed": "compare what is there with docs/offsets-elsewhere.md",
}


def check_elsewhere(settings: Sequence[ExternalOffsets]) -> list[Check]:
    """One check a source. None of them is required: a source that cannot be read costs its own groups."""
    return [_check(source) for source in settings]


def _check(settings: ExternalOffsets) -> Check:
    sources, errors = Sources([settings]), ErrorTally()
    sources.begin()
    found = sources.finish(lambda name: True, errors)
    name = f"offsets from {settings.name}"
    if errors:
        kind = next(iter(errors.counts))
        return Check(name, False, errors.example(kind), None, _ADVICE.get(kind), required=False)
    offsets = sum(len(group.offsets) for _, group in found.groups)
    return Check(name, True, f"{plural(len(found.groups), 'group')}, {plural(offsets, 'offset')}", required=False)
