"""The topic page."""
