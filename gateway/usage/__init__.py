"""What was used: token counts read from the passing bytes, the record of one request, the book of all.

Nothing here changes an answer; how much a key may use is `limits`' business.
"""

from gateway.usage.energy import GpuEnergy, is_energy_wanted
from gateway.usage.estimates import Ask, Estimates
from gateway.usage.ledger import Ledger
from gateway.usage.nvml import Nvml
from gateway.usage.record import RECORD, Record
from gateway.usage.tokens import Usage, at_top, count, from_json, in_answer

__all__ = [
    "RECORD",
    "Ask",
    "Estimates",
    "GpuEnergy",
    "Ledger",
    "Nvml",
    "Record",
    "Usage",
    "at_top",
    "count",
    "from_json",
    "in_answer",
    "is_energy_wanted",
]
