"""Response of the base to commanded twists: dead time, lag and friction droop, by output error."""

from youbot_dynamics.identification.response._fit import Response, identify_response

__all__ = [
    "Response",
    "identify_response",
]
