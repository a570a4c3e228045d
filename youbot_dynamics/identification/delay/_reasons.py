"""Why a delay, dead time or lag is not identified."""

from __future__ import annotations

from youbot_dynamics.identification.least_squares import Kind, Reason

CONSTANT = Reason(Kind.NOT_EXCITED, "the command never changed")
CONSTANT_BEFORE = Reason(Kind.NOT_EXCITED, "the command never changed before the last reading")
NO_INFORMATION = Reason(Kind.NOT_EXCITED, "the motion carries no information on the delay (constant velocity?)")
NO_RESPONSE = Reason(Kind.NOT_EXCITED, "the motion carries no information on the response to a change of the command")
PERIODIC = Reason(Kind.CONFUSED, "the motion is periodic: the delay and the delay plus one period fit equally well")
OPPOSITE = Reason(Kind.WRONG_SIGNALS, "the motion is opposite to the command: check the signs of the channel")
NEGATIVE = Reason(Kind.WRONG_SIGNALS, "the fitted dead time is negative: the motion would lead the command")
FASTER = Reason(Kind.UNEXPLAINED, "the motion changes faster than the command: the model lacks an effect")
ADDS_UP = Reason(
    Kind.UNEXPLAINED,
    "commands and motion differ in more than time: by a speed limit, a slope of the floor, or a gain that changes",
)


def leading(by: str) -> Reason:
    """Reason of a motion that leads its command by a time."""
    remedy = "check clocks and topics, and whether rows show a command that was sent no more"
    return Reason(Kind.WRONG_SIGNALS, f"the motion leads the command by {by}: {remedy}")


def stops(after: float) -> Reason:
    """Reason of motion that stops some time [s] after a command."""
    stop = f"the motion stops about {after:.2g} s after each command, although the next one comes later"
    return Reason(Kind.UNEXPLAINED, f"{stop}: send commands more often than the driver's watchdog asks for")
