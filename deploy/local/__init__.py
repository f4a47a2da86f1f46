"""The local mode: a real engine, the gateway and Caddy on one machine, without GPU, Docker or root.

Run as `python -m deploy.local` by the Makefile. The gateway itself knows nothing of this package.
"""
