"""Every table of the lake: what it holds, and how to open, append to, read and maintain it."""

from lagwise.tables.analysis import ANALYSIS_TABLES
from lagwise.tables.raw import RAW_TABLES
from lagwise.tables.schema import Column, Table

ALL_TABLES: tuple[Table, ...] = RAW_TABLES + ANALYSIS_TABLES

__all__ = ["ALL_TABLES", "ANALYSIS_TABLES", "RAW_TABLES", "Column", "Table"]
