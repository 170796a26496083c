"""The capacity page."""
