"""Which header's key counts, and which refusal a caller gets if none is ours."""

from typing import cast

import pytest

from gateway.access import find_key
from gateway.errors import GatewayError, InvalidApiKey, KeyStoreUnavailable
from gateway.keys import Directory, Key
from tests.policy import calls

OURS = calls.key()
Pairs = list[tuple[bytes, bytes]]


class Known:
    """Takes the place of a directory that knows `good`, and has lost its store when it is asked for `new`."""

    def find(self, token: bytes) -> Key:
        """The key, or the refusal that names the token."""
        if token == b"good":
            return OURS
        if token == b"new":
            raise KeyStoreUnavailable("later", retry_after=5)
        raise InvalidApiKey(token.decode("latin-1"))


def found(*headers: tuple[str, str]) -> Key:
    """The key that a request with these headers has."""
    pairs: Pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    return find_key(pairs, cast(Directory, Known()))


BEARER = ("authorization", "Bearer good")
OTHER = ("x-api-key", "good")


@pytest.mark.parametrize(
    "headers",
    [
        [BEARER], [OTHER], [BEARER, OTHER], [BEARER, ("x-api-key", "bad")], [BEARER, ("x-api-key", "new")],
        [("authorization", "Bearer bad"), OTHER], [("authorization", "Bearer new"), OTHER],
        [OTHER, ("authorization", "Basic Z29vZA==")], [("authorization", ""), OTHER],
        [("accept", "x"), ("authorization", "bEARER \t good \t"), ("host", "y")],
    ],
)  # fmt: skip
def test_a_key_of_ours_in_either_header_is_found(headers: list[tuple[str, str]]) -> None:
    """Authorization first; what else stands there does no harm."""
    assert found(*headers) is OURS


@pytest.mark.parametrize(
    ("headers", "cause"),
    [
        ([], ""), ([("authorization", "good")], ""), ([("authorization", "Basic good")], ""),
        ([("authorization", "Bearergood")], ""), ([("authorization", "Bearer")], ""),
        ([("authorization", "Bearer bad")], "bad"), ([("x-api-key", "bad")], "bad"),
        ([("authorization", "Bearer a"), ("x-api-key", "b")], "b"),
        ([("authorization", "Bearer \xe9")], "\xe9"),
        ([BEARER, BEARER], "two"), ([OTHER, OTHER], "two"), ([("authorization", ""), BEARER], "two"),
        ([("authorization", "Basic x"), BEARER, OTHER], "two"), ([BEARER, ("x-api-key", ""), OTHER], "two"),
    ],
)  # fmt: skip
def test_everything_else_is_refused(headers: list[tuple[str, str]], cause: str) -> None:
    """Two headers of one name are too: which one counts, a proxy in front may have decided otherwise."""
    with pytest.raises(InvalidApiKey) as refused:
        found(*headers)
    assert refused.value.cause is not None
    assert refused.value.cause.startswith(cause)


@pytest.mark.parametrize(
    "headers",
    [
        [("authorization", "Bearer new")], [("x-api-key", "new")],
        [("authorization", "Bearer new"), ("x-api-key", "bad")],
        [("authorization", "Bearer bad"), ("x-api-key", "new")],
    ],
)  # fmt: skip
def test_what_may_be_a_key_is_told_to_come_back_and_not_refused(headers: list[tuple[str, str]]) -> None:
    """A 401 would make its owner throw it away."""
    with pytest.raises(GatewayError) as refused:
        found(*headers)
    assert isinstance(refused.value, KeyStoreUnavailable)
