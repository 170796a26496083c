"""Alerts: from the verdicts on groups to messages that reach people.

``stages.py`` lists the way of an alert, stage by stage. ``run.py`` is the process that runs the stages in rounds.
"""
