"""uvicorn's cycle of one request and its response, with a head that leaves in one write with its body.

uvicorn puts each header through two regular expressions and writes the head by itself. Here all of a head is
judged at once, and what a short answer is, head and body, is one packet.
"""

from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from gateway.errors import Headers

_CONTROLS = bytes({*range(0x20), 0x7F} - {0x09})
_FRAMING = frozenset({b"content-length", b"transfer-encoding", b"connection"})
_WITHOUT_BODY = (204, 304)
_ONE_WRITE_BYTES = 65_536  # to join more would cost more than a second write


class Cycle(RequestResponseCycle):
    """uvicorn makes its own and asks for no class: one becomes this by its `__class__`."""

    _head = b""  # which waits for the first piece of its body

    async def send(self, message: Any) -> None:
        """As ASGI says; names of headers are in lower case.

        Raises RuntimeError for control characters in a head, and for a body of another length than it tells.
        """
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if self._head:
            self._write_both(message.get("body", b""), more=message.get("more_body", False))
        elif not self.response_started and self._may_have_body(message):
            self._begin(message["status"], message["headers"])
        else:
            await super().send(message)

    def _may_have_body(self, start: Any) -> bool:
        return self.scope["method"] != "HEAD" and start["status"] not in _WITHOUT_BODY

    def _begin(self, status: int, headers: Headers) -> None:
        """Write a head, or hold it until the first piece of a body whose length it tells."""
        self.response_started, self.waiting_for_100_continue = True, False
        head = _head(status, self._framed([*self.default_headers, *headers]))
        if self.chunked_encoding:
            self.transport.write(head)
        else:
            self._head = head

    def _framed(self, headers: Headers) -> Headers:
        """The headers, with those that tell how the body ends where they do not."""
        says_close = False
        for name, value in headers:
            if name in _FRAMING:
                says_close = self._note(name, value) or says_close
        if not (self.keep_alive or says_close):
            headers.append((b"connection", b"close"))
        if self.chunked_encoding is None:
            self.chunked_encoding = True
            headers.append((b"transfer-encoding", b"chunked"))
        return headers

    def _note(self, name: bytes, value: bytes) -> bool:
        """Keep what a header says of the body's end; whether it says that the connection ends, too."""
        if name == b"content-length" and self.chunked_encoding is None:
            self.chunked_encoding, self.expected_content_length = False, int(value)
        elif name == b"transfer-encoding" and value.lower() == b"chunked":
            self.chunked_encoding, self.expected_content_length = True, 0
        elif name == b"connection" and b"close" in value.lower():
            self.keep_alive = False
            return True
        return False

    def _write_both(self, body: bytes, *, more: bool) -> None:
        missing = self.expected_content_length - len(body)
        if missing < 0 or (missing and not more):
            raise RuntimeError("The body of the response is not as long as its head says.")
        head, self._head = self._head, b""
        if len(body) <= _ONE_WRITE_BYTES:
            self.transport.write(head + body)
        else:
            self.transport.write(head)
            self.transport.write(body)
        self.expected_content_length = missing
        if not more:
            self._complete()

    def _complete(self) -> None:
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


def _head(status: int, headers: Headers) -> bytes:
    parts = [STATUS_LINE[status]]
    for name, value in headers:
        parts += (name, b": ", value, b"\r\n")
    parts.append(b"\r\n")
    head = b"".join(parts)
    if len(head) - len(head.translate(None, _CONTROLS)) != 2 * (len(headers) + 2):
        raise RuntimeError("A header of the response holds control characters.")
    return head
