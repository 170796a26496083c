"""Where an answer points: pages of the dashboard by their addresses, and commands to copy."""
