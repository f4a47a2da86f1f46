"""The vLLM Gateway: keys, limits, policy and accounting before a vLLM engine."""

__version__ = "0.1.0"
