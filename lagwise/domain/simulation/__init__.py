"""What would happen to lag: traffic, members and outages played through before they happen."""
