"""``python -m lagwise``: the command, which lies above all rooms, is started by its name and not imported."""

import runpy

runpy.run_module("lagwise_app", run_name="__main__")
