"""The head of a part is read strictly and written so that the engine reads the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from python_multipart.multipart import parse_options_header

from gateway.errors import InvalidRequest
from gateway.public import part
from gateway.public.part import Part

NAMES = st.text(st.characters(blacklist_categories=["Cc", "Cs"]), min_size=1, max_size=50)


@given(NAMES, NAMES)
def test_names_are_read_back_as_they_are(name: str, filename: str) -> None:
    """Quotes, backslashes, semicolons, any script."""
    head = Part(name, filename, b"audio/wav").head()
    line, content_type, end = head.split(b"\r\n", 2)
    assert (content_type, end) == (b"Content-Type: audio/wav", b"\r\n")
    value = line.removeprefix(b"Content-Disposition: ")
    _, options = parse_options_header(value)
    assert options[b"name"] == name.encode()
    if filename[1:3] != ":\\" and filename[:2] != "\\\\":  # paths of an old browser, which parsers cut
        assert options[b"filename"] == filename.encode()
        again = part.of_headers({b"content-disposition": value, b"content-type": b"audio/wav"})
        assert (again.name, again.filename, again.content_type) == (name, filename, b"audio/wav")


@given(st.binary(max_size=80), st.binary(max_size=20))
def test_no_head_is_written_that_holds_more_than_its_lines(disposition: bytes, content_type: bytes) -> None:
    """Whatever came, what goes on is one line for each header, or a refusal."""
    headers = {b"content-disposition": b"form-data; name=a; " + disposition, b"content-type": content_type}
    try:
        head = part.of_headers(headers).head()
    except InvalidRequest:
        return
    lines = head.split(b"\r\n")
    assert len(lines) in (3, 4)
    assert all(line.translate(None, b"\r\n\0") == line for line in lines)


@pytest.mark.parametrize("encoding", [b"binary", b"8BIT", b"7bit "])
def test_bytes_as_they_are_may_be_said_aloud(encoding: bytes) -> None:
    """As some libraries write."""
    headers = {b"content-disposition": b"form-data; name=a", b"content-transfer-encoding": encoding}
    assert part.of_headers(headers).name == "a"
