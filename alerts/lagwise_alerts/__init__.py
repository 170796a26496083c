"""Alerts: from verdicts to messages that reach somebody.

``rules`` (what is worth telling) and ``conditions`` (what is the case, read from the lake) go into ``decide`` (pure);
what it decides is written in one transaction to the operational database (``store``), and ``outbox`` brings it from
there to the ``channels``. ``run`` turns the crank.
"""
