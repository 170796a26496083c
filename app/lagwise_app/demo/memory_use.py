"""How much memory the product takes: that of each part and of the processes that it started."""

import os
from collections.abc import Mapping

import psutil

_MIB = 1024 * 1024


class MemoryUse:
    """The most memory of each part, MiB, summed over its processes.

    Memory that processes share (Spark's Python workers are forks of one process) is counted once: the proportional set
    size, or on systems without it, what each process has for itself. Between fork and exec a child has its parent's
    whole memory map, and the system reports all of it for both. That lasts for milliseconds, so a peak is only what two
    successive looks have found.
    """

    def __init__(self) -> None:
        self.peak_mib: dict[str, float] = {}
        self._last_mib: dict[str, float] = {}

    def look(self, pids: Mapping[str, int]) -> None:
        """Measure the parts, and this process as ``supervisor``. A process that ends meanwhile counts nothing."""
        for part, pid in {**pids, "supervisor": os.getpid()}.items():
            mib = self._held(pid, descendants=part != "supervisor") / _MIB
            lasting = min(mib, self._last_mib.get(part, 0.0))
            self._last_mib[part] = mib
            self.peak_mib[part] = max(lasting, self.peak_mib.get(part, 0.0))

    @property
    def total_mib(self) -> float:
        """Sum of the peaks."""
        return sum(self.peak_mib.values())

    def _held(self, pid: int, *, descendants: bool) -> int:
        total = 0
        try:
            process = psutil.Process(pid)
            for one in [process, *(process.children(recursive=True) if descendants else [])]:
                try:
                    memory = one.memory_full_info()
                    total += getattr(memory, "pss", memory.uss)
                except psutil.Error:
                    continue  # it ended between being listed and being measured
        except psutil.Error:
            return 0
        return total
