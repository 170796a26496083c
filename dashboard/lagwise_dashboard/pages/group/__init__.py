"""The group page."""
