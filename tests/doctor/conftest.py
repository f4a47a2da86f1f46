"""The box of the tests of `make up`, for what both look at."""

from tests.box.fixtures import box

__all__ = ["box"]
