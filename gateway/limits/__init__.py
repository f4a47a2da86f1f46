"""How much one key may use: reserved in one step before a call, settled after it, given back exactly once."""

from gateway.limits.clocks import Clocks
from gateway.limits.limits import Limits
from gateway.limits.reservation import Reservation

__all__ = ["Clocks", "Limits", "Reservation"]
