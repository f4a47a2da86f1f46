"""No engine fetches what a caller names, unless the operator named the host."""

from typing import Any

import pytest

from gateway.errors import InvalidRequest
from gateway.policy import media

HOSTS = ("images.example.com",)
PIXEL = "data:image/png;base64,iVBORw0KGgo="


def chat(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": list(parts)}]}


@pytest.mark.parametrize("field", ["image_url", "audio_url", "video_url"])
@pytest.mark.parametrize("wrap", [lambda url: url, lambda url: {"url": url}], ids=["plain", "object"])
@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data", "https://images.example.com/a.png", "file:///etc/passwd",
        "HTTP://x", " https://x", "//x/a.png", "",
    ],
)  # fmt: skip
def test_only_data_is_taken_by_default(field: str, wrap: Any, url: str) -> None:
    """Whatever the scheme and with or without a type: the refusal names the part."""
    with pytest.raises(InvalidRequest) as refused:
        media.check(chat({"type": "text", "text": "x"}, {field: wrap(url)}), "data")
    assert refused.value.param == f"messages[1].content[1].{field}"


@pytest.mark.parametrize("policy", ["data", HOSTS])
def test_data_urls_and_text_pass(policy: Any) -> None:
    """What is in the request itself is fetched from nowhere."""
    media.check(chat({"type": "image_url", "image_url": {"url": PIXEL}}), policy)
    media.check(chat({"type": "text", "text": "http://anything"}, {"input_audio": {"data": "AAAA"}}), policy)


def test_a_named_host_may_be_asked() -> None:
    """By https, on its own port."""
    media.check(chat({"image_url": {"url": "https://images.example.com/a.png?size=1@2"}}), HOSTS)


@pytest.mark.parametrize(
    "url",
    [
        "http://images.example.com/a", "https://images.example.com.evil.net/a", "https://evil.net/images.example.com",
        "https://images.example.com@evil.net/", "https://evil.net\\@images.example.com/",
        "https://x@images.example.com/", "https://images.example.com:8443/", "https://images.example.com:x/",
        "https://images.example.com\n.evil.net/", "https://[images.example.com/",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_named_host_is_refused(url: str) -> None:
    """Also where two parsers could see two hosts."""
    with pytest.raises(InvalidRequest):
        media.check(chat({"image_url": url}), HOSTS)


@pytest.mark.parametrize(
    "part", [{"image_url": PIXEL}, {"input_audio": {}}, {"image_embeds": "x"}, {"video_url": {"url": PIXEL}}]
)
def test_none_means_none(part: dict[str, Any]) -> None:
    """Not even what the request itself holds."""
    with pytest.raises(InvalidRequest):
        media.check(chat(part), "none")


@pytest.mark.parametrize(
    "messages", [None, "x", [None], ["x"], [{"content": "x"}], [{"content": [None, "x"]}]]
)
def test_odd_messages_are_the_engines_to_judge(messages: Any) -> None:
    """No shape of a body makes this fail in another way."""
    media.check({"messages": messages}, "none")
