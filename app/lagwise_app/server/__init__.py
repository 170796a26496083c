"""`lagwise serve`: what other programs ask Lagwise for over HTTP."""
