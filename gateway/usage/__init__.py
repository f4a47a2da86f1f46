"""What was used: token counts read from the passing bytes, and the record of one request.

Nothing here changes an answer; how much a key may use is `limits`' business.
"""

from gateway.usage.record import RECORD, Record
from gateway.usage.tokens import Usage, at_top, count, from_json, in_answer

__all__ = ["RECORD", "Record", "Usage", "at_top", "count", "from_json", "in_answer"]
