"""The demonstration: a real broker, consumers that misbehave on purpose, and the whole product on top."""
