"""Records that retention deletes, or a consumer skips, before they are read."""
