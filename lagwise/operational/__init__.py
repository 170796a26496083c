"""The operational database, as far as every process uses it: ``engine`` opens it, a ``lease`` admits one process at a
time, ``leadership`` is what a process checks before it writes, and ``migrate`` brings the tables up to date.

The tables of the alerts are declared in ``lagwise_alerts``, and made by the ``migrations`` here.
"""
