"""The ops port: metrics, readiness and the admin API. Never reachable through the public port."""

from gateway.ops.application import Parts, build
from gateway.ops.explain import Explainer

__all__ = ["Explainer", "Parts", "build"]
