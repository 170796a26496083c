"""A group whose members work through what they fetched of one partition before they turn to the next."""

from collections import Counter, deque
from itertools import pairwise

from tests.traces.history import STEP_S, Habits, History


class TakingTurns(History):
    """Several members, each with neighbouring partitions, that read one partition at a time.

    A fetch holds at most so many records; when it has been worked through, the next one of that partition is fetched
    and waits behind those of the others, as with Kafka's consumer.

    Attributes:
        members: how many share the partitions.
        fetch_s: how many seconds a member works on a full fetch.
        break_s: what it needs besides for each, such as to write a file.
        capacity: records that a member can read, as a multiple of what is written to its partitions.
        hangs: of a partition, from when to when it is not fetched.
    """

    def __init__(self, family: str, seed: int, habits: Habits, hours: float) -> None:
        super().__init__(family, seed, habits, hours)
        self.members, self.fetch_s, self.break_s, self.capacity = 1, 30.0, 0.0, 1.5
        self.hangs: dict[int, tuple[float, float]] = {}
        self._queues: list[deque[list[float]]] = []

    def owner(self, member: str, partition: int) -> str:
        return f"{member}-{self.member_of(partition)}"

    def member_of(self, partition: int) -> int:
        return partition * self.members // self.habits.partitions

    def _read(self, now: float, noise: list[float]) -> None:
        if not self._queues:
            self._queues = [deque() for _ in range(self.members)]
        counts = Counter(map(self.member_of, self.every))
        speeds = [self.capacity * self.share * counts[m] for m in range(self.members)]
        if self.reads(now, 0.0) is None:
            self._queues = [deque() for _ in range(self.members)]
            self.position = [float(offset) for offset in self.committed]
            return
        for m, queue in enumerate(self._queues):
            waiting = {int(fetch[0]) for fetch in queue}
            its = [p for p in self.every if self.member_of(p) == m]
            # Who is fetched first is chance: the brokers answer in any order.
            for p in sorted(its, key=lambda p: (p * 7 + 3) % 11):
                if p not in waiting:
                    self._fetch(queue, p, now, speeds[m])
            left_s = STEP_S * noise[its[0]]
            while queue and left_s > 0:
                p, records, break_s = queue[0]
                pause_s = min(break_s, left_s)
                queue[0][2] -= pause_s
                left_s -= pause_s
                taken = min(records, left_s * speeds[m])
                self.position[int(p)] += taken
                queue[0][1] -= taken
                left_s -= taken / speeds[m]
                if queue[0][1] <= 1e-6 and queue[0][2] <= 1e-6:
                    queue.popleft()
                    self._fetch(queue, int(p), now, speeds[m])

    def _fetch(self, queue: deque[list[float]], p: int, now: float, speed: float) -> None:
        since_s, until_s = self.hangs.get(p, (0.0, 0.0))
        available = self.end[p] - self.position[p]
        if available >= 1 and not since_s <= now < until_s:
            queue.append([p, min(available, self.fetch_s * speed), self.break_s])

    def _served(self, partition: int, until_s: float) -> list[float]:
        """The last hour's moments at which a partition was read before a moment."""
        last = self._step(until_s)
        position = self.position_at[partition]
        steps = range(max(1, last - round(3600 / STEP_S)), last)
        return [n * STEP_S + self.begins_s for n in steps if position[n] > position[n - 1]]

    def left_at_s(self, partition: int, until_s: float) -> float:
        """When a partition was last read before a moment."""
        return self._served(partition, until_s)[-1]

    def longest_absence_s(self, partition: int, until_s: float) -> float:
        """The longest that its owner left a partition untouched within the hour before a moment."""
        return max(b - a for a, b in pairwise(self._served(partition, until_s)))
