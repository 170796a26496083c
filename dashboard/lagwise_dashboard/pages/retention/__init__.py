"""The retention page."""
