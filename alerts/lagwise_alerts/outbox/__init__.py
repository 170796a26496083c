"""Messages kept in the operational database until they are delivered."""
