"""Stages 2 to 4 and 6: inhibit, notify, mute, group; and the text of a message. See `stages.py`."""
