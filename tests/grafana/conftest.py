"""The programs of Prometheus, shared with its own tests."""

from tests.prometheus.conftest import programs

__all__ = ["programs"]
