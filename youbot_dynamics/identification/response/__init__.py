"""How the base follows the twists it is sent: dead time, lag and droop, by output error (system 33)."""

from youbot_dynamics.identification.response._fit import Response, identify_response

__all__ = [
    "Response",
    "identify_response",
]
