"""Histories judged again: verdicts of traces (`lagwise replay`), alerts of the past (`lagwise alert backtest`)."""
