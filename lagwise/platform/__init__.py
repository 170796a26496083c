"""What every room needs of the machine: errors, logs, secrets, files, processes. Nothing here knows consumer groups."""
