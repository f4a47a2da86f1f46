"""The promises of gateway.settings."""
