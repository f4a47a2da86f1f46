"""Judges of what stands in the way of a start: evidence in, findings out, no I/O."""
