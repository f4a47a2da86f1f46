"""Judges of what runs, from its counters and its log: evidence in, findings out, no I/O."""
