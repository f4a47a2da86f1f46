"""A failure of the doctor's own, as whoever mends it needs it told."""

import traceback
from pathlib import Path
from types import FrameType

from gateway.errors import reason_of

MOST_OF_REASON = 200


def told(error: Exception) -> str:
    """Its kind, what it comes down to, and where: our own line, and that which raised it; on one line."""
    kind, reason = type(error).__name__, " ".join(_reason(error).split())[:MOST_OF_REASON]
    said = f"{kind}: {reason}" if reason not in {kind, ""} else kind
    places = [_place(frame, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    ours = [place for place in places if place.startswith("gateway/")]
    return ", at ".join([said, *dict.fromkeys([*ours[-1:], *places[-1:]])])


def _reason(error: Exception) -> str:
    # What came before an error that was raised `from None`, as those of json are, says less than the error.
    hides_it = error.__suppress_context__ and error.__cause__ is None
    return str(error) if hides_it else reason_of(error)


def _place(frame: FrameType, line: int) -> str:
    """File and line, as seen from where modules are imported: where that lies is this machine's business."""
    package = str(frame.f_globals.get("__package__") or "").replace(".", "/")
    return f"{Path(package, Path(frame.f_code.co_filename).name)}:{line}"
