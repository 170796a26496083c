"""From the lake to decisions: what holds of each group now, and what the rules say to it."""
