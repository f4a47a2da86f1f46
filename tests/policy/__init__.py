"""The promises of gateway.policy."""
