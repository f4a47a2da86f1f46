"""What an engine's own words may tell of its inside is taken out of them before a caller reads them.

Names of exceptions, files, internal addresses and objects of its runtime help no caller. What quotes the
request, a URL of the public network or a route, stays word for word: clients look for such texts.
"""

import re

# Each pattern begins where a word or a space does and nowhere inside it: a long run is looked at once.
_EXCEPTION = re.compile(r"(?<![\w.])(?:[\w.]*(?:Error|Exception|Warning)(?:\(\d+\))?: )+")
_EXCEPTION_OBJECT = re.compile(r"""(?<![\w.])[\w.]*(?:Error|Exception)\(((['"]).{0,500}?\2)\)""")
_JSON_EXCEPTION = re.compile(r"\[json\.exception\.[\w.]+\] ")  # nlohmann's, in llama.cpp
_TRACEBACK = re.compile(r"(?s)Traceback \(most recent call last\):.*?(?=^\w|\Z)", re.MULTILINE)
_FRAME = re.compile(r'(?<!\s)\s*+File "[^"\n]+", line \d+(?:, in \S+)?(?:\n {4,}.*)?')
_ROOTS = "home|usr|opt|var|tmp|root|lib|lib64|mnt|srv|etc|proc|app|workspace|vllm-workspace|models|data|Users"
_PATH = re.compile(rf"(?<![\w:/.])(?:/(?:{_ROOTS})(?=/)|[A-Z]:\\)[^\s'\"`,;:()<>]+")
_SOURCE = re.compile(r"(?<![\w:./\-])(?:[\w.\-]*+/)+[\w.\-]+\.(?:py|so|cu|cpp)\b(?::\d+)?")
_HOST = (
    r"(?:localhost|\[::1\]|0\.0\.0\.0|127(?:\.\d+){3}|10(?:\.\d+){3}|192\.168(?:\.\d+){2}"
    r"|172\.(?:1[6-9]|2\d|3[01])(?:\.\d+){2}|169\.254(?:\.\d+){2})"
)
_URL = re.compile(rf"https?://(?:{_HOST}|[\w\-]+(?=[:/\s'\"`)]|$))(?::\d+)?(?:/[^\s'\"`)]*)?")
_ADDRESS = re.compile(rf"(?<![\w.]){_HOST}(?::\d+)?(?![\w.])")
_OBJECT = re.compile(r"<(?:class|function|module|bound method|built-in \w+) [^>]*>|<[\w.]+ object[^>]*>")
_MEMORY = re.compile(r" at 0x[0-9a-fA-F]+")

_RULES = (
    (_TRACEBACK, ""),
    (_FRAME, ""),
    (_EXCEPTION, ""),
    (_EXCEPTION_OBJECT, r"\1"),
    (_JSON_EXCEPTION, ""),
    (_OBJECT, "an object"),
    (_MEMORY, ""),
    (_URL, "(an internal address)"),
    (_ADDRESS, "(an internal address)"),
    (_PATH, "(a path)"),
    (_SOURCE, "(a path)"),
)
LONGEST_MESSAGE = 10_000


def scrub(message: str) -> str:
    """The message without what is nobody's business; never empty."""
    if len(message) > LONGEST_MESSAGE:
        message = message[:LONGEST_MESSAGE] + "…"
    for pattern, instead in _RULES:
        message = pattern.sub(instead, message)
    return message.strip() or "The engine refused the request."
