"""`lagwise doctor`: checks of the machine, the lake, the clusters and the settings."""
