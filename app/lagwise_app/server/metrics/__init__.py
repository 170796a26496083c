"""What Prometheus scrapes: read from the lake, written as text by a thread, and served from memory."""
