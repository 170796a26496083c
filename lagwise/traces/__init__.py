"""Traces: recorded or constructed histories in folders of CSV files."""
