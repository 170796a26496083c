"""What assistants may ask, as tools of an MCP server."""
