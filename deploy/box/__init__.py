"""The compose stack of a GPU box: set up, started, watched, saved and upgraded by the docker command line.

Run as `python -m deploy.box` by the Makefile; it starts the local mode where no box is. What the services
are is said by compose.yaml; the gateway itself knows nothing of this package.
"""
