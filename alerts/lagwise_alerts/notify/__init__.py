"""From decisions to messages: what is inhibited, muted and grouped, and how the rest reads."""
