"""`python -m gateway` is `gateway`."""

from gateway.cli import app

if __name__ == "__main__":
    app(prog_name="gateway")
