"""``python -m lagwise``."""

from lagwise.cli import main

main()
