"""``__consumer_offsets`` read as a log of commits and of changes in groups. See docs/adr/0010."""
