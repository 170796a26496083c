"""`lagwise serve`: what other programs ask Lagwise for over HTTP, in several formats (ADR 47)."""
