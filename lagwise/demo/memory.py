"""How much memory the product takes: resident set sizes, summed over each part's processes."""

import os
from collections.abc import Mapping

import psutil

_MIB = 1024 * 1024


class Memory:
    """The largest resident set size seen of each part, MiB. Pages that processes share are counted in each."""

    def __init__(self) -> None:
        self.peak_mib: dict[str, float] = {}

    def look(self, pids: Mapping[str, int]) -> None:
        """Measure the parts, and this process as ``supervisor``. A process that ends meanwhile counts nothing."""
        for part, pid in {**pids, "supervisor": os.getpid()}.items():
            mib = self._resident(pid, descendants=part != "supervisor") / _MIB
            self.peak_mib[part] = max(mib, self.peak_mib.get(part, 0.0))

    @property
    def total_mib(self) -> float:
        """Sum of the peaks."""
        return sum(self.peak_mib.values())

    def _resident(self, pid: int, *, descendants: bool) -> int:
        total = 0
        try:
            process = psutil.Process(pid)
            for one in [process, *(process.children(recursive=True) if descendants else [])]:
                try:
                    total += one.memory_info().rss
                except psutil.Error:
                    continue  # it ended between being listed and being measured
        except psutil.Error:
            return 0
        return total
