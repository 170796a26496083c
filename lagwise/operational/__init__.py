"""The operational database, as far as every part uses it: ``engine`` opens it, ``lease`` sees to it that what only one
process may do is done by one, and ``turn`` is what a part asks before it writes.

The tables of the alerts are declared in ``lagwise_alerts``.
"""
