"""What changed before a group fell behind: found in what was measured, and one of it named as the likely cause."""
