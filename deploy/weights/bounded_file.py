"""A file that takes no more than was announced, whatever a server sends."""

import io
from io import BufferedRandom

from huggingface_hub import constants
from problems import Problem


class BoundedFile(io.BufferedIOBase):
    """What http_get writes to. `write` raises Problem instead of letting the file grow over `limit` bytes."""

    def __init__(self, content: BufferedRandom, name: str, limit: int) -> None:
        self._content = content
        self._name = name
        self._limit = limit

    def write(self, data: bytes, /) -> int:  # type: ignore[override]  # http_get writes bytes alone
        if self._content.tell() + len(data) > self._limit:
            raise Problem(
                f"the hub sends more for {self._name} than the {self._limit} bytes that it announced: what "
                f"answers as {constants.ENDPOINT} is not the hub, or is changed on its way: see where "
                "HTTPS_PROXY and CA_BUNDLE in .env lead"
            )
        return self._content.write(data)

    def tell(self) -> int:
        return self._content.tell()

    def seek(self, place: int, whence: int = io.SEEK_SET, /) -> int:
        return self._content.seek(place, whence)

    def truncate(self, size: int | None = None, /) -> int:
        return self._content.truncate(size)
