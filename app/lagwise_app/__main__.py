"""``python -m lagwise_app``, which ``python -m lagwise`` starts."""

from lagwise_app.cli import main

main()
