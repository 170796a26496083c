"""Stages 2 to 5 and 7: inhibit, notify, mute, correlate, group; and the text of a message. See `stages.py`."""
