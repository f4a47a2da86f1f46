"""Bytes to and from the engine: opened once, passed as they come, closed exactly once."""

from gateway.relay.booking import Bookings
from gateway.relay.call import Call, Calls
from gateway.relay.caller import CALLER, Caller
from gateway.relay.relay import Out, Passage, Relay

__all__ = ["CALLER", "Bookings", "Call", "Caller", "Calls", "Out", "Passage", "Relay"]
