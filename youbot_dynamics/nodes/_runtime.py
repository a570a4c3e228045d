"""Life of a node process: one executor, our own signal handlers, a last message to the robot however it ends."""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import gc
import mmap
import os
import re
import resource
import socket
import stat
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import rclpy
from rclpy import exceptions
from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rclpy.timer import Timer
from rclpy.utilities import remove_ros_args

from youbot_dynamics.errors import ParameterError, YoubotDynamicsError
from youbot_dynamics.nodes.processes import StopFlag, ignore_signals

try:
    from youbot_dynamics.nodes._events_executor import EventsExecutor
except AttributeError:  # an rclpy without it
    EventsExecutor = None  # type: ignore[assignment,misc]

_ACKNOWLEDGE = 0.2  # [s] a last message may take
EXECUTOR = "YOUBOT_EXECUTOR"  # environment variable: events, the default, or single_threaded
PRIORITY = "YOUBOT_PRIORITY"  # environment variable: real-time priority of the nodes that move the base; 0 for none
_NICE = -10  # niceness, where the system refuses a real-time priority
_TRANSPORTS = "FASTDDS_BUILTIN_TRANSPORTS"  # environment variable: what carries messages, in Fast DDS
_RECEIVE_BUFFER = 4 * 1024 * 1024  # [B]
_TOO_SMALL = 256 * 1024  # [B] a segment of shared memory of Fast DDS takes 512 kB
_M_MMAP_THRESHOLD = -3  # malloc.h
_HELP = """
A node of youbot_dynamics; it is started by `youbot bringup` or the launch file, and takes ROS arguments only, such as
--ros-args --params-file FILE -p NAME:=VALUE -r __ns:=/NAMESPACE. Its parameters: docs/parameters.md, `ros2 param list`.
"""
_END = 2.5  # [s] the middleware may take to let a node go; then the process ends with exit code 1
_WAKE = 0.05  # [s] between checks of the stop flag where nothing else wakes the executor

COMMAND_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
STATE_QOS = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
# A second of the driver, which sends two messages a pass, of wheels and of arm: with 10 a busy machine lost some.
DRIVER_QOS = QoSProfile(depth=100, reliability=ReliabilityPolicy.RELIABLE)
TF_QOS = QoSProfile(depth=100, reliability=ReliabilityPolicy.RELIABLE)
LATCHED_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def init() -> StopFlag:
    """Start rclpy without its signal handlers and install ours.

    Raises:
        ParameterError: ROS arguments or a parameter file that rcl refuses.
    """
    flag = StopFlag()
    _return_large_blocks()
    try:
        unknown = remove_ros_args(sys.argv)[1:]
        if unknown in (["--help"], ["-h"]):
            print(f"usage: {Path(sys.argv[0]).stem} [--ros-args ROS ARGUMENTS]\n{_HELP}")
            sys.exit(0)
        if unknown:
            raise ParameterError(f"argument {unknown[0]}", got="no such argument", remedy="see --ros-args of ROS 2")
        rclpy.init(args=sys.argv, signal_handler_options=SignalHandlerOptions.NO)
    except RuntimeError as problem:  # rclpy does not export its RCLError family
        text = str(problem).split(", at ")[0]
        raise ParameterError("ROS arguments", got=" ".join(text.split())) from None
    return flag


def _return_large_blocks() -> None:
    """Let glibc give blocks of 128 kB back to the system when they are freed.

    After the first free of such a block it keeps larger and larger ones in the heap, which then grows by fragments: a
    recorder by 115 kB/min, as each trajectory is a large message.
    """
    ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 128 * 1024)


@contextmanager
def without_shared_memory() -> Iterator[None]:
    """Make this process send all messages by UDP; its first node must be made within this context.

    Why: Fast DDS sends between processes of one machine through shared memory. When another process joins, it tests
    the ports of that process there, each for up to 333 ms (eProsima/Fast-DDS issue 6535). All publishers of the
    testing process wait meanwhile: /odom stopped for 1.2 s [seen]. Messages of our size lose nothing by UDP.

    How: the environment variable FASTDDS_BUILTIN_TRANSPORTS selects UDP. If it is set already, nothing else is done.
    It is not enough: with the discovery range LOCALHOST, rmw_fastrtps ignores it and asks for shared memory itself.
    Therefore that must fail. The first node of a process makes its participant, which all later nodes share. So a
    hidden node is made first, while the process may write no file as large as a segment of shared memory. Fast DDS
    then goes on with UDP alone; its warning is suppressed. The hidden node keeps the participant until the end of the
    context, when the real nodes use it.
    """
    if _TRANSPORTS in os.environ:
        yield
        return
    os.environ[_TRANSPORTS] = "UDPv4"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    no_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # what rclpy imports now would be cut short
    with _suppressed_output():
        resource.setrlimit(resource.RLIMIT_FSIZE, (_TOO_SMALL if soft < 0 else min(soft, _TOO_SMALL), hard))
        try:
            bare = {"use_global_arguments": False, "enable_rosout": False, "start_parameter_services": False}
            participant = Node(f"_participant_{os.getpid()}", **bare)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            sys.dont_write_bytecode = no_bytecode
    _enlarge_receive_buffers()
    try:
        yield
    finally:
        participant.destroy_node()


def _enlarge_receive_buffers() -> None:
    """Give each UDP socket of this process a receive buffer of 4 MB, or of net.core.rmem_max if that is less.

    Why: the system keeps arriving messages in this buffer until the process has time to read them, and drops what does
    not fit. The default of 208 kB is less than one trajectory of 300 kB. If such a trajectory arrives while the process
    waits for a core, joint states are dropped. A reliable writer sends a dropped message again only after its next
    heartbeat, up to 3 s later.

    How: Fast DDS has made its sockets by now, so they are found among the open files of the process.
    """
    for entry in os.listdir("/proc/self/fd"):
        try:
            if not stat.S_ISSOCK(os.fstat(int(entry)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(entry))) as opened:
                if opened.type == socket.SOCK_DGRAM and opened.family != socket.AF_UNIX:
                    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        except OSError:
            continue  # closed meanwhile, as that of the listing itself


@contextmanager
def _suppressed_output() -> Iterator[None]:
    """Suppress the outputs of this process, also of its libraries; an output that is closed stays so.

    Fast DDS 2 (Jazzy) writes its warnings to the standard output, Fast DDS 3 (Kilted) to the error output.
    """
    null, saved = os.open(os.devnull, os.O_WRONLY), []
    for stream, descriptor in ((sys.stdout, 1), (sys.stderr, 2)):
        if stream is not None:  # else another file has its descriptor by now
            stream.flush()
            saved.append((os.dup(descriptor), descriptor))
            os.dup2(null, descriptor)
    try:
        yield
    finally:
        for copy, descriptor in saved:
            os.dup2(copy, descriptor)
            os.close(copy)
        os.close(null)


def run(make_nodes: Callable[[], Sequence[Node]], driving: bool = False) -> None:
    """Make the nodes, spin them until a signal or an error, let each send its last message by `stop`, and exit.

    Exit code 0 after a signal, 1 after an error: one line for an error of the user's, a traceback for ours. Nodes that
    are `driving` move the base: they get a higher priority, if possible.
    """
    nodes: Sequence[Node] = ()

    def spin() -> None:
        nonlocal nodes
        flag = init()
        with flag.at_once(), without_shared_memory():
            nodes = make_nodes()
        leave_imports_out_of_collection()
        release_compiler()
        if driving:
            nodes[0].get_logger().info(raise_priority())
        with make_executor(*nodes) as executor:
            while not flag.set:
                executor.spin_once(timeout_sec=_WAKE)

    succeeded = [_succeeds(spin)]
    succeeded += [_succeeds(node.stop) for node in nodes if hasattr(node, "stop")]
    exit_process(nodes, all(succeeded))


def exit_process(nodes: Iterable[Node], succeeded: bool) -> NoReturn:
    """Destroy the nodes and exit with code 0 or 1; further signals are ignored."""
    # Fast DDS waited for ever in the end of a participant [seen]: what matters has been sent and written by now.
    faulthandler.dump_traceback_later(_END, exit=True, file=Path(os.devnull).open("w"))
    for node in nodes:
        node.destroy_node()
    rclpy.try_shutdown()
    ignore_signals()
    sys.exit(0 if succeeded else 1)


def _succeeds(step: Callable[[], None]) -> bool:
    """Take a step; where it fails print why, in one line for an error of the user's, by a traceback for ours."""
    try:
        step()
    except YoubotDynamicsError as problem:
        print(f"error: {problem}", file=sys.stderr)
    except (
        exceptions.InvalidParameterTypeException,
        exceptions.InvalidParameterValueException,
        exceptions.ParameterUninitializedException,
    ) as problem:
        print(f"error: {' '.join(str(problem).split())}", file=sys.stderr)
    except Exception:
        traceback.print_exc()
    else:
        return True
    return False


def make_executor(*nodes: Node) -> EventsExecutor | SingleThreadedExecutor:
    """Executor of the nodes, to be driven by `spin_once`; leave it, as a context, before they are destroyed.

    The middleware notifies an EventsExecutor of events; a SingleThreadedExecutor polls every entity at every wake-up,
    which takes about three times the processor time. An older rclpy without the first gets the second.

    Raises:
        ParameterError: the environment variable YOUBOT_EXECUTOR names no executor.
    """
    name = os.environ.get(EXECUTOR, "events")
    if name not in ("events", "single_threaded"):
        raise ParameterError(f"environment variable {EXECUTOR}", got=name, expected="events or single_threaded")
    if name == "events" and EventsExecutor is not None:
        return EventsExecutor(nodes)
    executor = SingleThreadedExecutor(context=nodes[0].context)
    for node in nodes:
        executor.add_node(node)
    return executor


def raise_priority(above: int = 0) -> str:
    """Let this process run before others as far as the system allows; a line about what it got.

    Its threads, those of DDS as well, get the real-time priority (SCHED_FIFO) of the environment variable
    YOUBOT_PRIORITY, 10 by default, plus `above` if they may have it; threads made later inherit it. Where that is
    refused it asks for niceness -10, of its threads and of its session, since between sessions Linux compares theirs
    alone (autogroup). The value 0 asks for nothing.

    Raises:
        ParameterError: the environment variable is no number from 0 to 98.
    """
    asked = os.environ.get(PRIORITY, "10")
    if not asked.isdecimal() or not 0 <= int(asked) <= 98:
        raise ParameterError(f"environment variable {PRIORITY}", got=asked, expected="a number from 0 to 98")
    if int(asked) == 0:
        return f"runs at the usual priority, as {PRIORITY} says"
    for priority in range(int(asked) + above, int(asked) - 1, -1):
        wanted = os.SCHED_FIFO, os.sched_param(priority)
        try:
            _of_each_thread(os.sched_setscheduler, *wanted)
            return f"runs at real-time priority {priority} (SCHED_FIFO)"
        except OSError as problem:
            needed = f"it needs CAP_SYS_NICE or a limit rtprio of {int(asked) + 1}, the guard's"
            refusal = f"no real-time priority: {problem.strerror}; {needed}"
    try:
        _of_each_thread(partial(os.setpriority, os.PRIO_PROCESS), _NICE)
        with suppress(OSError):  # a kernel without
            Path("/proc/self/autogroup").write_text(str(_NICE), encoding="ascii")
    except OSError:
        return f"{refusal}; a busy computer may delay this node"
    return f"{refusal}; runs at niceness {_NICE}"


def _of_each_thread(change: Callable[..., None], *wanted: Any) -> None:
    for thread in os.listdir("/proc/self/task"):
        with suppress(ProcessLookupError):  # it has ended meanwhile
            change(int(thread), *wanted)


def leave_imports_out_of_collection() -> None:
    """Freeze what exists now: a full garbage collection over it stopped a node for 0.35 s [seen]."""
    gc.collect()
    gc.freeze()


def release_compiler() -> None:
    """Give the memory of the compiler back to the system, once the nodes have been made and their code is compiled.

    Why: numba loads LLVM to compile, and 67 MB of that library stay in memory [measured], although it is hardly used
    any more.

    How: the pages of the library that are unchanged copies of its file are marked as not needed. If one is used again,
    the system reads it from the file. Pages that this process has written, such as relocations, exist nowhere else and
    stay.
    """
    if "llvmlite" not in sys.modules:
        return
    libc = ctypes.CDLL(None)
    with suppress(OSError):  # a kernel without this list
        mappings = re.split(r"\n(?=[0-9a-f]+-)", Path("/proc/self/smaps").read_text())
        for mapping in mappings:
            addresses, rights = mapping.split(maxsplit=2)[:2]
            if "/libllvmlite" in mapping and "w" not in rights and re.search(r"^Anonymous: +0 kB", mapping, re.M):
                begin, end = (int(address, 16) for address in addresses.split("-"))
                libc.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), mmap.MADV_DONTNEED)


def parse(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse a node's own arguments, by default those of the command line; ROS arguments stay in sys.argv for `init`."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    cut = words.index("--ros-args") if "--ros-args" in words else len(words)
    given = parser.parse_args(words[:cut])
    sys.argv = [sys.argv[0], *words[cut:]]
    return given


def acknowledged(publisher: Publisher) -> bool:
    """Wait until the last message has arrived, 0.2 s at most; False where it has not."""
    return publisher.wait_for_all_acked(Duration(seconds=_ACKNOWLEDGE))


def steady_timer(node: Node, period: float, callback: Callable[[], None]) -> Timer:
    """Timer of a period [s] on the steady clock, which neither jumps nor stands still with a simulation."""
    return node.create_timer(period, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))


def node_time(node: Node) -> float:
    """Time of a node's own clock [s], which stamps are compared with."""
    clock = node.get_clock()  # which takes as long as decoding a message, and without simulated time is the system's
    return 1e-9 * clock.now().nanoseconds if clock.ros_time_is_active else time.time()
