"""``__consumer_offsets`` read as what it is: a log of commits and of what happens in groups. See docs/adr/0010."""
