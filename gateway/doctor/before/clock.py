"""The clock: certificates, budgets and expiry of keys go by it."""

from collections.abc import Iterator

from gateway.doctor.evidence import Clock
from gateway.doctor.finding import Finding, NotLookedError, Severity, Unseen

# Between them lies what a slow answer and the whole seconds of a Date header explain.
NOTICEABLE_SECONDS = 10
WRONG_SECONDS = 120
MEND = "sudo timedatectl set-ntp true"


def skew(clock: Clock) -> Iterator[Finding]:
    """Whether the clock is right, by another's Date header, or is at least kept synchronised."""
    check, ahead = "clock", clock.ahead_seconds
    if ahead is not None and abs(ahead) >= NOTICEABLE_SECONDS:
        severity: Severity = "error" if abs(ahead) >= WRONG_SECONDS else "warning"
        title = f"The clock is {abs(ahead):.0f} s {'ahead' if ahead > 0 else 'behind'}"
        evidence = f"against the Date of {clock.against}"
        yield Finding(check, severity, title, evidence, f"{MEND}; sudo systemctl restart systemd-timesyncd")
    elif clock.synchronised is False:
        title = "The clock is not kept synchronised"
        yield Finding(check, "warning", title, "timedatectl: NTPSynchronized=no", MEND)
    elif ahead is None and clock.synchronised is None:
        raise NotLookedError(
            Unseen("neither timedatectl nor the Date of another machine was to be had", "timedatectl")
        )
    else:
        told = f"{ahead:+.0f} s against {clock.against}" if ahead is not None else "timedatectl: synchronised"
        yield Finding(check, "ok", "Clock", told)
