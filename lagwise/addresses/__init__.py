"""The addresses of the dashboard: one declaration for pages, for links in messages and commands, and for the docs."""
