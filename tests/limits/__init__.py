"""The promises of gateway.limits."""
