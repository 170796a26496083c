"""The memory of each process of the product, with the processes that it started."""

import os
from collections.abc import Mapping

import psutil

_MIB = 1024 * 1024


class MemoryUse:
    """The peak memory of each process of the product, MiB, with all its descendants.

    Shared memory (Spark's Python workers are forks of one process) counts once: as the proportional set size, or as the
    unique set size on systems without it. Between fork and exec the system reports the parent's whole memory map for
    the child as well. That lasts for milliseconds, so the lower of two successive measurements counts.
    """

    def __init__(self) -> None:
        self.peak_mib: dict[str, float] = {}
        self._last_mib: dict[str, float] = {}

    def measure(self, pids: Mapping[str, int]) -> None:
        """Measure processes by name, and this one as ``supervisor``. A process that ends meanwhile counts as 0."""
        for name, pid in {**pids, "supervisor": os.getpid()}.items():
            mib = _bytes_of(pid, descendants=name != "supervisor") / _MIB
            lasting = min(mib, self._last_mib.get(name, 0.0))
            self._last_mib[name] = mib
            self.peak_mib[name] = max(lasting, self.peak_mib.get(name, 0.0))

    @property
    def total_mib(self) -> float:
        return sum(self.peak_mib.values())


def _bytes_of(pid: int, *, descendants: bool) -> int:
    total = 0
    try:
        process = psutil.Process(pid)
        for one in [process, *(process.children(recursive=True) if descendants else [])]:
            try:
                memory = one.memory_full_info()
                total += getattr(memory, "pss", memory.uss)
            except psutil.Error:
                continue  # it ended after it was listed
    except psutil.Error:
        return 0
    return total
