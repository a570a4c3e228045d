"""Read many recordings in parallel: in this process, in processes of this machine, or on a dask cluster."""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import logging
import os
import signal
import socket
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from youbot_dynamics import __version__
from youbot_dynamics.arrays import excerpt
from youbot_dynamics.errors import (
    ParameterError,
    RecordingError,
    ResourceError,
    YoubotDynamicsError,
    missing_package,
)
from youbot_dynamics.identification.pipeline._extraction import Extracted, HereWorker, Task, Worker, expand, extract

if TYPE_CHECKING:
    from distributed import Client, Future

_WORTH_A_FLEET = 8  # recordings; starting processes takes about as long as reading a few
_ANSWER = 5.0  # timeout for the scheduler's answer [s]
_FIRST_WORKER = 10.0  # timeout for its first worker [s]
_NO_WORKER_LEFT = 30.0  # time without workers after which the run is aborted [s]
_AHEAD = 256  # tasks submitted at a time, so that results do not fill the memory of the scheduler


@contextmanager
def fleet_worker(
    paths: Sequence[Path],
    scheduler: str,
    counted: Callable[[int, int], None] = lambda finished, count: None,
    trusted: bool = False,
) -> Iterator[Worker]:
    """Yield a worker: this process for few recordings, one process per core for many, or a dask cluster.

    The result does not depend on the worker. Processes started here are stopped at the end in any case.

    Args:
        paths: recordings, or folders with recordings.
        scheduler: address of a dask scheduler, such as "tls://10.0.0.7:8786" with the certificates of dask's own
            configuration; "" for this machine. Its workers must see the recordings under the same paths, and have
            this version of the package.
        counted: called with the number of finished recordings and their total number in each phase.
        trusted: whether the scheduler may be on another machine without TLS. Whoever answers can run code here.

    Raises:
        RecordingError: a path does not exist.
        ResourceError: a scheduler is given, but the package `distributed` is not installed.
        ParameterError: no scheduler with workers answers at the address, or it is not trusted.
    """
    if scheduler:
        thing, logged = f"--scheduler {scheduler}", logging.root.manager.disable
        logging.disable(logging.CRITICAL)  # dask would print a traceback about what it cannot read
        try:
            with _client_of(scheduler, thing, trusted) as client:
                yield _counted(DaskWorker(client, thing), counted)
        except YoubotDynamicsError:
            raise
        except Exception as problem:  # whatever a foreign answer leads to
            got, remedy = f"answers that cannot be used ({_named(problem)})", "restart the workers, or omit it"
            raise ResourceError(thing, got=got, expected="what its workers read", remedy=remedy) from None
        finally:
            logging.disable(logged)
        return
    count, cores = len(expand(paths)), len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if count < _WORTH_A_FLEET or cores < 2 or importlib.util.find_spec("distributed") is None:
        yield HereWorker(counted=counted)
        return
    with _processes(min(cores, count)) as client:
        yield _counted(DaskWorker(client, "the processes of this machine"), counted)


def _counted(worker: Worker, counted: Callable[[int, int], None]) -> Worker:
    """A worker that also reports its progress."""

    def work(tasks: Sequence[Task], done: Callable[[str], None]) -> list[Extracted]:
        finished = itertools.count(1)

        def count(name: str) -> None:
            counted(next(finished), len(tasks))
            done(name)

        counted(0, len(tasks))
        return worker(tasks, count)

    return work


def _named(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {problem}"


def _on_this_machine(host: str) -> bool:
    """Whether each address of a host belongs to this machine: then what is sent there has it as its sender too."""
    for family, kind, _, _, place in socket.getaddrinfo(host, 1, type=socket.SOCK_DGRAM):
        with socket.socket(family, kind) as probe:
            try:
                probe.connect(place)  # sends nothing
            except OSError:
                return False
            if probe.getsockname()[0] != place[0] and not ip_address(place[0]).is_loopback:
                return False
    return True


@contextmanager
def _client_of(address: str, thing: str, trusted: bool) -> Iterator[Client]:
    """Connect to a scheduler with suitable workers."""
    if importlib.util.find_spec("distributed") is None:
        raise missing_package("distributed", "--scheduler", "dask's package for clusters")
    from distributed import Client
    from distributed.comm import parse_address, parse_host_port
    from distributed.comm.registry import get_backend

    expected = "a dask scheduler, HOST:PORT"
    start = "start one with: dask scheduler; or omit --scheduler to use this machine"
    try:
        scheme, location = parse_address(address)
        get_backend(scheme)
        place = parse_host_port(location)
        if scheme == "tls":
            expected = "a dask scheduler, HOST:PORT, with a certificate of the same CA as in dask's configuration"
        elif not trusted and not _on_this_machine(place[0]):
            got, remedy = "another machine without TLS", "use tls:// (docs/scaling.md), or add --trust-scheduler"
            expected = "one that is known: whoever answers can run code here"
            raise ParameterError(thing, got=got, expected=expected, remedy=remedy)
        # A client that finds nobody leaves its thread behind; so ask first whether anybody listens there.
        socket.create_connection(place, timeout=_ANSWER).close()
        client = Client(address, timeout=_ANSWER)
    except YoubotDynamicsError:
        raise
    except Exception as problem:  # another protocol may lead to any
        waited = isinstance(problem, (OSError, asyncio.TimeoutError))
        got = f"no answer within {_ANSWER:g} s" if waited else _named(problem)
        raise ParameterError(thing, got=got, expected=expected, remedy=start) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_FIRST_WORKER)
        except (TimeoutError, asyncio.TimeoutError):
            remedy = f"start them with: dask worker {address}"
            raise ParameterError(thing, got="a scheduler without workers", expected="workers", remedy=remedy) from None
        _check_versions(client, thing)
        yield client


def _check_versions(client: Client, thing: str) -> None:
    """Reject workers that lack this package or have another version, since their results could differ."""
    remedy = "install the same version of youbot_dynamics where the workers run, and restart them"
    try:
        versions = set(client.run(_version).values())
    except Exception as problem:  # any reason for which a worker cannot import this module
        got = f"workers that cannot import it: {problem}"
        raise ParameterError(thing, got=got, expected=f"youbot_dynamics {__version__}", remedy=remedy) from None
    if versions != {__version__}:
        got = f"workers with youbot_dynamics {', '.join(sorted(versions))}"
        raise ParameterError(thing, got=got, expected=__version__, remedy=remedy)


def _version() -> str:
    return __version__


def dask_setup(worker: object) -> None:
    """Let a worker process ignore Ctrl-C: the process that started the fleet stops it, so nothing is printed twice.

    dask calls this function of a preloaded module with its own worker, which is unused.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _processes(count: int) -> Iterator[Client]:
    """Start `count` processes on this machine with one thread each, since decoding holds the interpreter lock.

    Sockets on loopback only, no dashboard. The first death of a worker is reported immediately; `DaskWorker` retries.
    """
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0", "allowed_failures": 0},
            silence_logs=logging.CRITICAL + 1,
            preload=[__name__],
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


class DaskWorker:
    """Executes tasks on the workers of a dask cluster; see `Worker`.

    If a worker dies or raises an unexpected error, its recording is reported as broken. When a worker dies, dask blames
    every task that waited for it. These tasks are retried once, one at a time, to find the one that caused it.
    """

    def __init__(self, client: Client, name: str) -> None:
        """Use the workers of a client; error messages call them `name`."""
        self._client = client
        self._name = name

    def __call__(self, tasks: Sequence[Task], done: Callable[[str], None]) -> list[Extracted]:
        """Execute every task; results are in the order of the tasks.

        Raises:
            ResourceError: the scheduler or every worker is gone.
        """
        extracted: dict[int, Extracted] = {}
        suspects: list[Task] = []

        def take(task: Task, future: Future) -> None:
            result = _result(task, future)
            if result is None:
                suspects.append(task)
                return
            extracted[task.number] = result
            done(task.path.name)

        self._work(tasks, _AHEAD, take)
        again, suspects = suspects, []
        self._work(again, 1, take)
        for task in suspects:
            died = RecordingError(
                str(task.path),
                got="a worker process that died twice",
                expected="a recording that fits into its memory",
                remedy="split the recording, or identify it alone to see the error",
            )
            extracted[task.number] = Extracted(task.number, str(task.path), broken=died)
            done(task.path.name)
        return [extracted[task.number] for task in tasks]

    def _work(self, tasks: Sequence[Task], ahead: int, take: Callable[[Task, Future], None]) -> None:
        """Submit tasks, at most `ahead` at a time, and pass each finished future to `take`."""
        waiting = deque(tasks)
        running: dict[Future, Task] = {}
        while waiting or running:
            while waiting and len(running) < ahead:
                task = waiting.popleft()
                running[self._client.submit(extract, task, pure=False)] = task
            for future in self._finished(list(running)):
                take(running.pop(future), future)
                future.release()

    def _finished(self, futures: Sequence[Future]) -> Sequence[Future]:
        """Return the finished futures, at least one.

        Raises:
            ResourceError: the scheduler or every worker is gone.
        """
        from distributed import wait

        while True:
            try:
                return list(wait(futures, timeout=_NO_WORKER_LEFT, return_when="FIRST_COMPLETED").done)
            except (TimeoutError, asyncio.TimeoutError):
                if self._client.status == "running" and self._client.scheduler_info(n_workers=-1)["workers"]:
                    continue  # a long recording
                got = f"no worker for {_NO_WORKER_LEFT:g} s"
            except CancelledError:
                got = "a scheduler that stopped"
            raise ResourceError(self._name, got=got, expected="workers that read the recordings", remedy="start again")


def _result(task: Task, future: Future) -> Extracted | None:
    """Result of a finished task; None if its worker died."""
    from distributed import KilledWorker

    problem = future.exception()
    if problem is None:
        extracted: Extracted = future.result()
        if not isinstance(extracted, Extracted) or extracted.number != task.number:
            raise TypeError(f"{excerpt(extracted)} of {task.path}")
        return extracted
    if isinstance(problem, KilledWorker):
        return None
    if not isinstance(problem, YoubotDynamicsError):
        problem = RecordingError(str(task.path), got=_named(problem), expected="a recording that can be read")
    return Extracted(task.number, str(task.path), broken=problem)
