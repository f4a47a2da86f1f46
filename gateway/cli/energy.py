"""What `gateway usage` says of energy below its table."""

from gateway.store import Energy

JOULES_PER_WATT_HOUR = 3600


def told(energy: Energy) -> str:
    """One line: what the box's GPUs consumed, and how much that is for each token of the same hours."""
    consumed = f"Energy: {_hours_of_power(energy.joules)} by the GPUs of this box in these hours, idle or not"
    if not energy.tokens:
        return f"{consumed}; no tokens."
    return f"{consumed}: {energy.joules / energy.tokens:.3g} J per token (prompt and completion)."


def _hours_of_power(joules: float) -> str:
    watt_hours = joules / JOULES_PER_WATT_HOUR
    return f"{watt_hours / 1000:,.2f} kWh" if watt_hours >= 100 else f"{watt_hours:.3g} Wh"
