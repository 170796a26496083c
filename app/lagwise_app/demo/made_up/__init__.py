"""The cluster of the demo that has a past: made-up samples in the lake, which the real analysis judges."""
