"""The made-up cluster does what its stories say, and the same in every run."""

import numpy as np
import pytest

from lagwise.config.base import DEFAULT_LAG_OBJECTIVE_SECONDS
from lagwise.domain.sizing.objective import least_capacity
from lagwise_sandbox.made_up.groups import GROUPS, MadeUpGroup
from lagwise_sandbox.made_up.offsets import (
    MINUTES_OF_DAY,
    MINUTES_OF_WEEK,
    PAST_MINUTES,
    Array,
    Offsets,
    offsets_of,
    rates_of,
    running,
    shape,
    trend,
)

BY_NAME = {group.group: group for group in GROUPS}
#: Monday to Friday, by the days of the past's last week, which ends on a Wednesday.
LAST_WEEK = slice(PAST_MINUTES - MINUTES_OF_WEEK, PAST_MINUTES)


def waiting_seconds(group: MadeUpGroup, offsets: Offsets) -> Array:
    """How long it takes the group to read what is unread, by minute."""
    lag: Array = (offsets.high_watermarks - offsets.committed).sum(axis=0) / group.capacity_per_second
    return lag


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.group)
def test_offsets_only_grow_and_are_the_same_in_every_run(group: MadeUpGroup) -> None:
    offsets, longer = offsets_of(group, PAST_MINUTES), offsets_of(group, PAST_MINUTES + MINUTES_OF_DAY)
    for short, long in (
        (offsets.high_watermarks, longer.high_watermarks),
        (offsets.committed, longer.committed),
        (offsets.is_running[None], longer.is_running[None]),
    ):
        np.testing.assert_array_equal(short, long[:, :PAST_MINUTES])
    assert (np.diff(longer.high_watermarks, axis=1) >= 0).all()
    assert (np.diff(longer.committed, axis=1) >= 0).all()
    assert (longer.committed <= longer.high_watermarks).all()
    assert offsets.high_watermarks.shape == (group.partitions, PAST_MINUTES)


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.group)
def test_everything_is_read_when_the_past_ends(group: MadeUpGroup) -> None:
    """The demo must not begin with alarms about groups that do not exist, nor be about to."""
    offsets = offsets_of(group, PAST_MINUTES + 12 * 60)
    assert waiting_seconds(group, offsets)[PAST_MINUTES - 60 :].max() < 3.0 or group.has_bursts
    assert waiting_seconds(group, offsets)[PAST_MINUTES - 10 : PAST_MINUTES].max() < 3.0
    assert offsets.is_running[PAST_MINUTES - 60 :].all()


def test_days_and_weeks_have_their_shape() -> None:
    hours = shape(MINUTES_OF_WEEK).reshape(-1, 60).mean(axis=1)
    days = np.sort(hours.reshape(7, 24).max(axis=1))
    assert hours.max() > 3.0 * hours.min(), "nights are quiet"
    assert days[1] < 0.75 * days[2], "two days of seven are, too"
    np.testing.assert_allclose(shape(2 * MINUTES_OF_WEEK)[MINUTES_OF_WEEK:], shape(MINUTES_OF_WEEK))


def test_the_growing_group_is_too_small_in_forty_days() -> None:
    """Without noise: the first week in which its objective takes more than 70 % of what it can do."""
    group = BY_NAME["checkout"]
    minutes = PAST_MINUTES + 10 * MINUTES_OF_WEEK
    asked = (group.peak_per_second * shape(minutes) * trend(group, minutes)).reshape(-1, MINUTES_OF_WEEK)
    takes = np.array([least_capacity(week, DEFAULT_LAG_OBJECTIVE_SECONDS).rate_per_second for week in asked])
    too_small = np.flatnonzero(takes > 0.7 * group.capacity_per_second)
    days = 7.0 * (too_small[0] - PAST_MINUTES / MINUTES_OF_WEEK)
    assert 33.0 < days < 47.0, takes
    assert takes[0] < 0.8 * takes[4], "it has grown"


def test_one_group_never_has_a_backlog() -> None:
    group = BY_NAME["audit-log"]
    offsets = offsets_of(group, PAST_MINUTES)
    assert offsets.is_running.all()
    rates = rates_of(group, PAST_MINUTES)
    assert ((offsets.high_watermarks - offsets.committed).sum(axis=0) <= 2.0 * rates.max()).all()


def test_one_group_falls_behind_on_each_working_day_and_catches_up() -> None:
    group = BY_NAME["invoice-pdf"]
    days = waiting_seconds(group, offsets_of(group, PAST_MINUTES))[LAST_WEEK].reshape(7, MINUTES_OF_DAY)
    assert (days.max(axis=1) > 600.0).sum() == 5
    assert (days.min(axis=1) < 3.0).all()


def test_bursts_are_more_than_the_group_can_do_and_it_keeps_its_objective() -> None:
    group = BY_NAME["push-sender"]
    assert rates_of(group, PAST_MINUTES).max() > 1.2 * group.capacity_per_second
    assert (rates_of(group, PAST_MINUTES) > group.capacity_per_second).sum() > 10
    offsets = offsets_of(group, PAST_MINUTES)
    # An hour after it was stopped it has caught up with that.
    was_stopped = np.convolve(~running(group, PAST_MINUTES), np.ones(61))[:PAST_MINUTES] > 0
    waiting = waiting_seconds(group, offsets)
    assert 60.0 < waiting[~was_stopped].max() < 300.0
    assert waiting[was_stopped].max() > 300.0


def test_groups_that_are_stopped_work_through_a_backlog_at_their_capacity() -> None:
    for group in GROUPS:
        if not group.is_stopped_sometimes:
            continue
        offsets = offsets_of(group, PAST_MINUTES)
        read = np.diff(offsets.committed.sum(axis=0))[LAST_WEEK] / 60.0
        is_behind = waiting_seconds(group, offsets)[1:][LAST_WEEK] > 120.0
        at_work = read[is_behind & (read > 0.0)]
        assert len(at_work) > 20, "enough to see what it can do"
        assert np.median(at_work) == pytest.approx(group.capacity_per_second, rel=0.05)
