"""A function of a test in a process of its own where numba is not installed: plain Python's answer."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable

from repository import ROOT

_QUESTION = """
import pickle, sys
sys.modules["numba"] = None
from youbot_dynamics.compiled import HAVE_NUMBA
assert not HAVE_NUMBA
function, arguments = pickle.loads(bytes.fromhex(sys.argv[1]))
print(*(float(number).hex() for number in function(*arguments)))
"""


def numbers_without_numba(function: Callable[..., Iterable[float]], *arguments: object) -> list[float]:
    """What a function of a module gives there, to the last bit."""
    command = [sys.executable, "-c", _QUESTION, pickle.dumps((function, arguments)).hex()]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [float.fromhex(word) for word in done.stdout.split()]
