"""What groups may share at a moment of the past, read when it is asked for: only few moments ask."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from lagwise.domain.correlation import GroupKey, GroupTraits


class LazyTraits(Mapping[GroupKey, GroupTraits]):
    """The traits of groups, which ``read`` returns."""

    def __init__(self, read: Callable[[], Mapping[GroupKey, GroupTraits]]) -> None:
        self._read = read

    @cached_property
    def _traits(self) -> Mapping[GroupKey, GroupTraits]:
        return self._read()

    def __getitem__(self, key: GroupKey) -> GroupTraits:
        return self._traits[key]

    def __iter__(self) -> Iterator[GroupKey]:
        return iter(self._traits)

    def __len__(self) -> int:
        return len(self._traits)
