"""Where alerts go: an operator's ALERT_URL as Alertmanager's configuration, and a test of the way there.

Which alerts there are is said in `deploy/prometheus/rules/`. Nothing here talks to Docker.
"""
