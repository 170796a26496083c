"""Stage 1: what holds of each group now, and which alerts follow by the rules. See `stages.py`."""
