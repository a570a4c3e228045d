"""Ctrl-C while a program of this package is imported, and while it runs: one line, whatever was interrupted."""

from __future__ import annotations

# Not `signal`, which wraps it: importing that takes milliseconds, in which Ctrl-C prints a traceback.
import _signal  # type: ignore[import-not-found]
import os
import sys
from collections.abc import Callable

INTERRUPTED = 130  # exit code after Ctrl-C, as of a shell: 128 + SIGINT

_by_module = sys.argv[:1] == ["-m"] and "-m" in sys.orig_argv  # python -m MODULE, whose parents are being imported
_module = sys.orig_argv[sys.orig_argv.index("-m") + 1] if _by_module else ""
_folder, _name = os.path.split(os.path.abspath(sys.argv[0] if sys.argv else ""))
if _by_module:
    _name = _module.rpartition(".")[2]
# Where pip and colcon put our programs; a program of somebody else may have the name of one.
_in_place = _folder == os.path.dirname(sys.executable) or os.path.basename(_folder) == "youbot_dynamics"
_program = _module.startswith("youbot_dynamics.") if _by_module else _in_place
NODE = _program and os.path.isfile(os.path.join(os.path.dirname(__file__), "nodes", f"{_name}.py"))
_interrupted = False


def _leave(number: int, frame: object) -> None:
    """While it imports: end at once. A node, to which a signal is the usual end, is silent."""
    if NODE:
        os._exit(0)
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


def _raise(number: int, frame: object) -> None:
    global _interrupted
    if _interrupted:
        _leave(number, frame)
    _interrupted = True
    raise KeyboardInterrupt


def imported() -> None:
    """Let Ctrl-C raise KeyboardInterrupt: the program has been imported."""
    if _signal.getsignal(_signal.SIGINT) is _leave:
        _signal.signal(_signal.SIGINT, _raise)
        sys.unraisablehook = _unraisable


def _unraisable(problem: sys.UnraisableHookArgs) -> None:
    """Ctrl-C in a callback, such as one of the import system: nobody would hear of it."""
    if problem.exc_type is KeyboardInterrupt:
        _leave(_signal.SIGINT, None)
    sys.__unraisablehook__(problem)


def run(command: Callable[..., int], *arguments: object) -> int:
    """Run the command of a program; KeyboardInterrupt instead of what else an import raises that Ctrl-C interrupts.

    At its end Ctrl-C is ignored: an interpreter that ends would print a traceback.
    """
    try:
        return command(*arguments)
    except BaseException:
        if _interrupted:
            raise KeyboardInterrupt from None
        raise
    finally:
        if _signal.getsignal(_signal.SIGINT) in (_leave, _raise):
            _signal.signal(_signal.SIGINT, _signal.SIG_IGN)


# Not where Ctrl-C is ignored, as in a shell's background.
_program = NODE or _by_module and _program or _in_place and _name in ("youbot", "identify_robot")
if _program and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _leave)
