"""Gatherers of evidence: programs, files, /proc, HTTP. They judge nothing; a missing program is evidence."""
