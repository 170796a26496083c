"""The proof table of the decisions. Every row says why its outcome is right; a row is only changed with a reason.

A history is a list of (second, status): the sample at that second showed that status, and the decision was taken five
seconds later. ``None`` is a round without the group; ``"="`` is a round in which nothing new was known. A word after a
colon is the reason of an unknown, a number after a hash of how many partitions the status is known. Expected are
(second, event, severity, status): all that is told, and nothing else.
"""

from dataclasses import dataclass

History = list[tuple[float, str | None]]
Told = list[tuple[float, str, str, str | None]]


@dataclass(frozen=True)
class Row:
    name: str
    why: str
    history: History
    notified: Told
    seen_active: bool | None = True


def steps(status: str, first: int, last: int, step: int = 15) -> History:
    return [(float(second), status) for second in range(first, last + 1, step)]


ROWS = [
    Row(
        "healthy",
        "nothing is wrong, so nobody is told anything",
        [*steps("ok", 0, 300), (315, "catching_up"), (330, "lagging"), (345, "ghost")],
        [],
    ),
    Row(
        "stopped fires at its first sample",
        "the status has waited for 30 s itself, and a stopped group must be posted within 90 s",
        [(0, "ok"), (15, "stopped")],
        [(15, "firing", "page", "stopped")],
    ),
    Row(
        "losing data fires at its first sample",
        "every second costs records",
        [(0, "ok"), (15, "losing_data")],
        [(15, "firing", "page", "losing_data")],
    ),
    Row(
        "one sample at risk is not told",
        "hours are left, and a forecast from one sample may be gone with the next",
        [(0, "ok"), (15, "at_risk"), (30, "ok"), (45, "at_risk"), (60, "ok")],
        [],
    ),
    Row(
        "two samples at risk are told",
        "two successive samples agree",
        [(0, "ok"), (15, "at_risk"), (30, "at_risk")],
        [(30, "firing", "page", "at_risk")],
    ),
    Row(
        "falling behind warns after two minutes",
        "a trend that does not last is not worth a look",
        [(0, "ok"), *steps("falling_behind", 15, 150)],
        [(135, "firing", "warn", "falling_behind")],
    ),
    Row(
        "falling behind for less than two minutes is not told",
        "and starts from nothing the next time",
        [(0, "ok"), *steps("falling_behind", 15, 105), (120, "ok"), *steps("falling_behind", 135, 240), (255, "ok")],
        [],
    ),
    Row(
        "a status that began before anybody looked counts from its beginning",
        "the analysis says since when; the alert process may have been down",
        [(0, "falling_behind@-600")],
        [(0, "firing", "warn", "falling_behind")],
    ),
    Row(
        "resolved after a minute of calm, not before",
        "60 s of calm in the data's time: 30 → 90",
        [(15, "stopped"), *steps("catching_up", 30, 105)],
        [(15, "firing", "page", "stopped"), (90, "resolved", "page", "catching_up")],
    ),
    Row(
        "flapping is told once",
        "the calm between the stops never lasts for a minute",
        [
            (15, "stopped"),
            (30, "ok"),
            (45, "ok"),
            (60, "stopped"),
            (75, "ok"),
            (90, "ok"),
            (105, "ok"),
            (120, "stopped"),
        ],
        [(15, "firing", "page", "stopped")],
    ),
    Row(
        "after a real recovery the next stop is a new alert",
        "it was over, somebody was told so, and now it is not",
        [(15, "stopped"), *steps("ok", 30, 90), (105, "stopped")],
        [(15, "firing", "page", "stopped"), (90, "resolved", "page", "ok"), (105, "firing", "page", "stopped")],
    ),
    Row(
        "worse is told in the same alert",
        "who went back to sleep over a warning must hear of the page",
        [(0, "falling_behind@-600"), (15, "stopped"), (30, "losing_data")],
        [
            (0, "firing", "warn", "falling_behind"),
            (15, "escalated", "page", "stopped"),
            (30, "escalated", "page", "losing_data"),
        ],
    ),
    Row(
        "stalled to stopped is worse: the members are gone",
        "it tells where to look now",
        [(15, "stalled"), (30, "stopped")],
        [(15, "firing", "page", "stalled"), (30, "escalated", "page", "stopped")],
    ),
    Row(
        "better but not well is not told, and neither is the way back",
        "stopped was told already in this incident and is not louder than stalled",
        [(15, "stopped"), *steps("stalled", 30, 120), (135, "stopped")],
        [(15, "firing", "page", "stopped")],
    ),
    Row(
        "loud again after it had been quiet for long is told again",
        "the page had become a warning; the warning becoming a page wakes again",
        [(15, "stopped"), *steps("falling_behind", 30, 300), (315, "stopped")],
        [(15, "firing", "page", "stopped"), (315, "escalated", "page", "stopped")],
    ),
    Row(
        "a page stays a page for a minute after the status is better",
        "stopped, falling behind, stopped within the minute is one page",
        [(0, "falling_behind@-600"), (15, "stopped"), (30, "falling_behind"), (45, "stopped")],
        [(0, "firing", "warn", "falling_behind"), (15, "escalated", "page", "stopped")],
    ),
    Row(
        "a lesser rule that is still counting keeps the alert open",
        "falling behind for less than two minutes tells nobody, but it is not calm either",
        [(15, "stopped"), *steps("falling_behind", 30, 120), *steps("ok", 135, 195)],
        [(15, "firing", "page", "stopped"), (195, "resolved", "page", "ok")],
    ),
    Row(
        "resolved with the loudest that was told",
        "a pager that was called must be called off",
        [(15, "stopped"), *steps("falling_behind", 30, 300), *steps("ok", 315, 450)],
        [(15, "firing", "page", "stopped"), (435, "resolved", "page", "ok")],
    ),
    Row(
        "unknown does not end an alert",
        "a group that cannot be judged is not known to be well",
        [(15, "stopped"), *steps("unknown:rebalancing", 30, 600)],
        [(15, "firing", "page", "stopped")],
    ),
    Row(
        "an unknown that was there before hides nothing",
        "4 of 6 partitions were never committed, before, during and after: the 2 that hung are known, and well",
        [
            *steps("unknown:no_commit#2", 0, 600),
            *steps("stalled#2", 615, 1200),
            *steps("unknown:no_commit#2", 1215, 5400),
            *steps("stalled#2", 5415, 5460),
        ],
        [
            (615, "firing", "page", "stalled"),
            (1275, "resolved", "page", "unknown"),
            (5415, "firing", "page", "stalled"),
        ],
    ),
    Row(
        "whatever the reason of an unknown that was there before",
        "a partition has had no leader for days; the others hung, and read again",
        [*steps("stopped#5", 15, 60), *steps("unknown:unreadable#5", 75, 150)],
        [(15, "firing", "page", "stopped"), (135, "resolved", "page", "unknown")],
    ),
    Row(
        "fewer known than in trouble may hide it",
        "one of the 2 that hung cannot be read any more, and the 4 that were never committed outvote it",
        [*steps("stalled#2", 15, 60), *steps("unknown:no_commit#1", 75, 3600)],
        [(15, "firing", "page", "stalled")],
    ),
    Row(
        "none known is not as many as some",
        "the group itself cannot be read: it has no partition at all",
        [*steps("stalled#1", 15, 60), *steps("unknown:unreadable", 75, 7200)],
        [(15, "firing", "page", "stalled")],
    ),
    Row(
        "trouble that comes back in a short unknown is the same trouble",
        "a rebalance hid it for ten minutes",
        [*steps("stopped#6", 15, 60), *steps("unknown:rebalancing", 75, 675), *steps("stopped#6", 690, 720)],
        [(15, "firing", "page", "stopped")],
    ),
    Row(
        "unknown for good ends an alert after an hour",
        "the topic was deleted while its consumer hung: it hangs there no more, and the next trouble must be told",
        [*steps("stalled#4", 15, 60), *steps("unknown:expired#2", 75, 3750), *steps("stalled#2", 3765, 3780)],
        [
            (15, "firing", "page", "stalled"),
            (3735, "resolved", "page", "unknown"),
            (3765, "firing", "page", "stalled"),
        ],
    ),
    Row(
        "blindness never ends one",
        "it passes by itself, and then the group may still be stopped",
        [(15, "stopped"), *steps("unknown:unreadable", 30, 14_400)],
        [(15, "firing", "page", "stopped")],
    ),
    Row(
        "unknown does not raise one",
        "no default rule asks for unknown",
        steps("unknown:unreadable", 0, 600),
        [],
    ),
    Row(
        "unknown stops the clock of a pending alert",
        "60 s of falling behind before and 60 s after are the two minutes, the 10 minutes between are not",
        [
            *steps("falling_behind", 15, 75),
            *steps("unknown:rebalancing", 90, 690),
            *steps("falling_behind@705", 705, 765),
        ],
        [(765, "firing", "warn", "falling_behind")],
    ),
    Row(
        "unknown stops the clock of the calm",
        "30 s before and 30 s after make the minute of calm",
        [
            (15, "stopped"),
            *steps("ok@30", 30, 60),
            *steps("unknown:unreadable", 75, 675),
            *steps("ok@690", 690, 735),
        ],
        [(15, "firing", "page", "stopped"), (720, "resolved", "page", "ok")],
    ),
    Row(
        "no news is no calm",
        "the analysis stands still: its last verdict was ok, and stays 20 minutes old",
        [(15, "stopped"), (30, "ok"), *steps("=", 45, 1200)],
        [(15, "firing", "page", "stopped")],
    ),
    Row(
        "no news does not raise a pending alert",
        "the same, with the trend that was half-way to a warning",
        [(15, "falling_behind"), *steps("=", 30, 1200)],
        [],
    ),
    Row(
        "after a pause the status vouches for itself",
        "nothing was seen for 20 minutes; then the status says that it has been ok for 10",
        [(15, "stopped"), (1215, "ok@615")],
        [(15, "firing", "page", "stopped"), (1215, "resolved", "page", "ok")],
    ),
    Row(
        "after a pause a fresh ok is not yet calm",
        "nothing was seen for 20 minutes, and ok has just begun",
        [(15, "stopped"), (1215, "ok@1215"), (1230, "ok@1215")],
        [(15, "firing", "page", "stopped")],
    ),
    Row(
        "what happened in a pause is not known",
        "falling behind before and after, but it says itself that it has just begun again",
        [(15, "falling_behind@15"), (1215, "falling_behind@1205")],
        [],
    ),
    Row(
        "calm before and after a pause is not calm throughout",
        "ok before and after, but it says itself that it has just begun again",
        [(15, "stopped@15"), (30, "ok@30"), (1230, "ok@1220")],
        [(15, "firing", "page", "stopped")],
    ),
    Row(
        "data that goes back takes nothing away",
        "the analysis was run again over the past: 100 s until 0 and 20 s after are the two minutes",
        [(0, "falling_behind@-100"), (-60, "falling_behind@-100"), (20, "falling_behind@-100")],
        [(20, "firing", "warn", "falling_behind")],
    ),
    Row(
        "a deleted group resolves after a minute",
        "in the time of the data: missing at 30, gone at 75",
        [(15, "stopped"), *steps("-", 30, 90)],
        [(15, "firing", "page", "stopped"), (75, "resolved", "page", None)],
    ),
    Row(
        "a group that is missing once is not gone",
        "one listing without it may be a coordinator that was just moving",
        [(15, "stopped"), (30, "-"), (45, "-"), (60, "stopped@15"), (75, "-"), (90, "-")],
        [(15, "firing", "page", "stopped")],
    ),
    Row(
        "a group that is missing where there were errors is not gone yet",
        "it may be among what could not be read",
        [(15, "stopped"), *steps("!", 30, 600)],
        [(15, "firing", "page", "stopped")],
    ),
    Row(
        "a group that is missing for ten minutes despite errors is gone",
        "errors of one broken group must not keep every deleted one alive",
        [(15, "stopped"), *steps("!", 30, 630)],
        [(15, "firing", "page", "stopped"), (615, "resolved", "page", None)],
    ),
    Row(
        "an abandoned group does not page",
        "it was stopped when Lagwise first saw it; 200 of these are normal in an old cluster",
        [*steps("unknown:too_few_samples", 0, 30), *steps("stopped", 45, 300), (315, "at_risk"), (330, "losing_data")],
        [],
        seen_active=False,
    ),
    Row(
        "an abandoned group that somebody starts again is a group like others",
        "a stalled one has members, which is a sign of life",
        [(0, "stopped"), (15, "stalled")],
        [(15, "firing", "page", "stalled")],
        seen_active=False,
    ),
    Row(
        "whether it was ever active cannot be told: hold",
        "the history cannot be read at the moment; a page to 200 abandoned groups would be worse than waiting",
        steps("stopped", 0, 300),
        [],
        seen_active=None,
    ),
]

ROWS_BY_NAME = {row.name: row for row in ROWS}
