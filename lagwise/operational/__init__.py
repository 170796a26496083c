"""The operational database, as far as every process uses it: ``engine`` opens it, a ``lease`` admits one process at a
time, and ``leadership`` is what a process checks before it writes.

The tables of the alerts are declared in ``lagwise_alerts``.
"""
