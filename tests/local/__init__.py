"""The local mode: what `make up` is made of."""
