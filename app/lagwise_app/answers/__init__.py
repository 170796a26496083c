"""What other programs ask about groups, without HTTP: for servers of any protocol."""
