"""Which alerts a file of rules would have given, and when: the same decisions, over a history and not the present."""
