"""The rules that people write: what to look for, how urgently, after how long, and whom to notify."""
