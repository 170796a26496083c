"""The rules of verdicts on columns: one definition, for one group-partition or a million, at one moment or at many."""
