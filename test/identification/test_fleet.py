"""Many recordings at once: who reads them changes nothing, and nothing that breaks stops the rest."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from command_line import exit_code
from fleet_bags import write_drives

from youbot_dynamics.errors import ParameterError, RecordingError, ResourceError
from youbot_dynamics.identification.base_friction import FrictionSignals
from youbot_dynamics.identification.base_friction._fit import friction_sums, most_general
from youbot_dynamics.identification.base_friction.stage import friction_model
from youbot_dynamics.identification.pipeline import _extraction, fleet_worker, identify
from youbot_dynamics.identification.pipeline import _fleet as fleet
from youbot_dynamics.identification.pipeline._extraction import HereWorker, Task, expand
from youbot_dynamics.identification.pipeline._fleet import DaskWorker
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.robot import load_robot

ROBOT = load_robot()
STAGES = ("delay", "base_friction")
COUNT = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_drives(tmp_path_factory.mktemp("fleet"), COUNT)


@pytest.fixture(scope="module")
def cluster():
    """A dask cluster that somebody else has started."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        silence_logs=60,
    ) as running:
        yield running


@pytest.fixture(scope="module")
def local():
    """The worker that a folder of many bags gets by itself."""
    with fleet._processes(2) as client:
        yield DaskWorker(client, "test")


def nothing(name: str) -> None:
    """Progress nobody watches."""


def tasks_of(folder: Path, robot: object = ROBOT) -> list[Task]:
    return [Task(path, k, STAGES, robot, Options()) for k, path in enumerate(expand([folder]))]


def numbers(found) -> np.ndarray:
    """Every number of a result: value, standard error, interval."""
    return np.array(
        [[f.estimate.value, f.estimate.standard_error, *f.estimate.interval] for f in found.result.findings]
    )


def test_processes_find_what_a_single_pass_finds(folder: Path, local: DaskWorker) -> None:
    alone = identify([folder], ROBOT, Options(), only=STAGES)
    assert len(alone.result.sources) == COUNT
    assert alone.result["robot.base.friction.viscous_x"].identified
    found = identify([folder], ROBOT, Options(), only=STAGES, worker=local)
    np.testing.assert_allclose(numbers(found), numbers(alone), rtol=1e-9, atol=0.0)
    assert found.result.as_dict() == alone.result.as_dict()


def test_a_cluster_by_its_address_takes_out_what_this_process_takes_out(folder: Path, cluster) -> None:
    here = HereWorker()(tasks_of(folder), nothing)
    with fleet_worker([folder], cluster.scheduler_address) as remote:
        there = remote(tasks_of(folder), nothing)
    for mine, theirs in zip(here, there, strict=True):
        assert (mine.number, mine.path, mine.sha256) == (theirs.number, theirs.path, theirs.sha256)
        delays = [[one.value, one.standard_error] for part in (mine, theirs) for one in part.parts["delay"].estimates]
        assert delays[: len(delays) // 2] == delays[len(delays) // 2 :]
        sums = [part.parts["base_friction"].sums for part in (mine, theirs)]
        for name in ("keys", "rows", "gram", "cross"):
            np.testing.assert_allclose(getattr(sums[0], name), getattr(sums[1], name), rtol=1e-12)


def test_results_come_in_the_order_of_the_recordings(folder: Path, local: DaskWorker) -> None:
    backwards = tasks_of(folder)[::-1]
    names: list[str] = []
    found = local(backwards, names.append)
    assert [one.path for one in found] == [str(task.path) for task in backwards]
    assert sorted(names) == sorted(task.path.name for task in backwards)


def test_few_recordings_are_read_here_and_many_elsewhere(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1}, raising=False)
    asked, here = [], []
    monkeypatch.setattr(fleet, "HereWorker", lambda counted: here.append(HereWorker(counted=counted)) or here[-1])
    monkeypatch.setattr(
        fleet, "_processes", lambda count: asked.append(count) or (_ for _ in ()).throw(StopAsyncIteration)
    )
    bags = expand([folder])
    with fleet_worker(bags[:7], ""):
        assert len(here) == 1
    with pytest.raises(StopAsyncIteration), fleet_worker([folder], ""):
        pass
    assert asked == [2] and len(here) == 1
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with fleet_worker([folder], ""):
        assert asked == [2] and len(here) == 2


def test_finished_recordings_are_counted(folder: Path) -> None:
    told: list[tuple[int, int]] = []
    with fleet_worker(expand([folder])[:3], "", lambda *count: told.append(count)) as worker:
        worker(tasks_of(folder)[:3], nothing)
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_broken_recordings_are_told_and_the_others_read(folder: Path, local: DaskWorker, tmp_path: Path) -> None:
    whole = expand([folder])[:2]
    (tmp_path / "deep" / "deeper").mkdir(parents=True)
    (tmp_path / "deep" / "good").symlink_to(whole[0])
    (tmp_path / "deep" / "deeper" / "cut").mkdir()
    (tmp_path / "deep" / "deeper" / "cut" / "cut_0.mcap").write_bytes(b"\x89MCAP0\r\n and then nothing")
    (tmp_path / "empty").mkdir()
    (tmp_path / "good_too").symlink_to(whole[1])
    (tmp_path / "wrong.mcap").write_text("no bag at all")
    bags = expand([tmp_path])
    results = [identify(bags, ROBOT, Options(), only=STAGES, worker=worker).result for worker in (None, local)]
    assert results[0].as_dict() == results[1].as_dict()
    skipped = {Path(one.path).name: one.reason for one in results[0].skipped}
    assert set(skipped) == {"cut", "empty", "wrong.mcap"}
    assert "an empty folder" in skipped["empty"]
    assert [Path(source.path).name for source in results[0].sources] == ["good", "good_too"]


@dataclass
class Strange:
    """In place of a robot: does something unforeseen to every process but the one that made it."""

    deadly: bool
    home: int = field(default_factory=os.getpid)

    @property
    def robot_id(self) -> str:
        if os.getpid() != self.home:
            if self.deadly:
                os._exit(7)
            raise ZeroDivisionError("one by nothing")
        return ROBOT.robot_id


def test_an_unforeseen_error_breaks_one_recording_only(folder: Path, local: DaskWorker) -> None:
    tasks = tasks_of(folder)[:4]
    tasks[2] = tasks_of(folder, Strange(deadly=False))[2]
    found = local(tasks, nothing)
    assert [one.broken is None for one in found] == [True, True, False, True]
    assert isinstance(found[2].broken, RecordingError)
    assert "ZeroDivisionError: one by nothing" in str(found[2].broken)


@pytest.mark.slow
def test_a_worker_that_dies_breaks_only_the_recording_it_died_of(folder: Path, local: DaskWorker) -> None:
    tasks = tasks_of(folder)
    tasks[3] = tasks_of(folder, Strange(deadly=True))[3]
    names: list[str] = []
    found = local(tasks, names.append)
    assert [one.number for one in found if one.broken is not None] == [3]
    assert "a worker process that died" in str(found[3].broken)
    assert sorted(names) == sorted(task.path.name for task in tasks)


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:{port}", "127.0.0.1:{port}", "no address", "ftp://127.0.0.1:8786"]
)
def test_an_address_nobody_answers_is_told_within_seconds(folder: Path, address: str, monkeypatch) -> None:
    monkeypatch.setattr(fleet, "_ANSWER", 0.5)
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        given = address.format(port=taken.getsockname()[1])
        began = time.monotonic()
        with pytest.raises(ParameterError, match="a dask scheduler, HOST:PORT") as told, fleet_worker([folder], given):
            pass
    assert given in str(told.value)
    assert "dask scheduler" in told.value.remedy
    assert time.monotonic() - began < 20.0


@pytest.mark.slow
def test_a_scheduler_without_workers_is_told(folder: Path, monkeypatch) -> None:
    from distributed import LocalCluster

    monkeypatch.setattr(fleet, "_FIRST_WORKER", 0.3)
    settings = {"n_workers": 0, "host": "127.0.0.1", "dashboard_address": None, "silence_logs": 60}
    with (
        LocalCluster(**settings, scheduler_kwargs={"dashboard_address": "127.0.0.1:0"}) as empty,
        pytest.raises(ParameterError, match="a scheduler without workers"),
        fleet_worker([folder], empty.scheduler_address),
    ):
        pass


@pytest.mark.slow
def test_workers_with_another_version_are_refused(folder: Path, cluster, monkeypatch) -> None:
    monkeypatch.setattr(fleet, "__version__", "0.0.1")
    with (
        pytest.raises(ParameterError, match=r"workers with youbot_dynamics .*expected 0\.0\.1"),
        fleet_worker([folder], cluster.scheduler_address),
    ):
        pass


@pytest.mark.slow
def test_a_cluster_that_goes_away_is_told(folder: Path, monkeypatch) -> None:
    from distributed import Client, LocalCluster

    monkeypatch.setattr(fleet, "_NO_WORKER_LEFT", 0.5)
    settings = {"n_workers": 1, "processes": False, "protocol": "tcp://", "host": "127.0.0.1", "silence_logs": 60}
    with (
        LocalCluster(
            **settings, dashboard_address=None, scheduler_kwargs={"dashboard_address": "127.0.0.1:0"}
        ) as brief,
        Client(brief) as client,
    ):
        client.retire_workers(list(client.scheduler_info(n_workers=-1)["workers"]))
        with pytest.raises(ResourceError, match="no worker for 0.5 s"):
            DaskWorker(client, "--scheduler there")(tasks_of(folder)[:1], nothing)


def test_a_scheduler_without_the_package_is_told(monkeypatch, folder: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with (
        pytest.raises(ResourceError, match="pip install 'youbot_dynamics\\[fleet\\]'"),
        fleet_worker([folder], "here:1"),
    ):
        pass


def session_of(pid: int) -> int:
    """Session of a process; 0 where it is gone or dead."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == "Z" else int(fields[3])


def members(session: int) -> list[int]:
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and session_of(int(entry.name)) == session
    ]


def eventually(condition, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return bool(condition())


FLEET = """
import os, sys
os.sched_getaffinity = lambda pid: {0, 1}
from pathlib import Path
from youbot_dynamics.identification.pipeline import _fleet as fleet
from youbot_dynamics.identification.pipeline._extraction import Task
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.robot import load_robot
def main():
    folder, robot = Path(sys.argv[1]), load_robot()
    try:
        with fleet.fleet_worker([folder], "") as worker:
            bags = enumerate(sorted(folder.iterdir()))
            tasks = [Task(bag, k, ("delay", "base_friction"), robot, Options()) for k, bag in bags]
            while True:
                worker(tasks, lambda name: print("read", flush=True))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(2)
if __name__ == "__main__":
    main()
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="data folder of processes, /proc, is missing")
@pytest.mark.parametrize("how", ["interrupted", pytest.param("killed", marks=pytest.mark.slow)])
def test_no_process_outlives_the_command(folder: Path, how: str, tmp_path: Path) -> None:
    script = tmp_path / "fleet_script.py"
    script.write_text(FLEET)
    process = subprocess.Popen(
        [sys.executable, str(script), str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Of a background job of a shell it would inherit that Ctrl-C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "read\n"
        assert len(members(process.pid)) >= 3
        if how == "interrupted":
            os.killpg(process.pid, signal.SIGINT)  # what a terminal does at Ctrl-C
            _, said = process.communicate(timeout=30)
            assert (process.returncode, said) == (2, "interrupted\n")
        else:
            process.kill()
            process.communicate(timeout=30)
        assert eventually(lambda: not members(process.pid), 20.0), members(process.pid)
    finally:
        for pid in members(process.pid):
            os.kill(pid, signal.SIGKILL)


def test_what_is_kept_of_an_hour_is_below_two_megabytes() -> None:
    time_ = np.arange(0.0, 3600.0, 0.02)
    phases = np.array([0.3, 1.1, 2.0, 2.9])
    speeds = 6.0 * np.sin(0.7 * time_[:, None] + phases) + 2.0 * np.sin(0.19 * time_[:, None] - phases)
    torques = 0.3 * np.sign(speeds) + 0.05 * speeds
    kept = {}
    for hours in (1, 3):
        stamps = np.concatenate([time_ + 3600.0 * k for k in range(hours)])
        signals = FrictionSignals(
            stamps, np.tile(speeds, (hours, 1)), np.tile(torques, (hours, 1)), np.tile(speeds, (hours, 1))
        )
        sums = friction_sums(signals, most_general(friction_model(ROBOT, each_wheel=True)))
        kept[hours] = len(pickle.dumps(sums))
    assert kept[1] < 1_800_000
    assert kept[3] < 1_900_000  # longer recordings get longer blocks


def test_folders_in_folders_are_searched_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in (
        "b/run_2/run_2_0.mcap",
        "b/run_1/run_1_0.db3",
        "a/old.bag",
        "a/notes/readme.txt",
        "c/one.mcap",
        "c/two.mcap",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "b" / "run_1" / "metadata.yaml").touch()
    found = [path.relative_to(tmp_path).as_posix() for path in expand([tmp_path])]
    assert found == ["a/old.bag", "b/run_1", "b/run_2", "c/one.mcap", "c/two.mcap"]


def test_a_split_bag_stays_one_recording(tmp_path: Path) -> None:
    for k in range(3):
        (tmp_path / f"long_{k}.mcap").touch()
    assert expand([tmp_path]) == [tmp_path]


def test_links_that_lead_in_a_circle_end_and_nothing_is_taken_twice(tmp_path: Path) -> None:
    (tmp_path / "day" / "run").mkdir(parents=True)
    (tmp_path / "day" / "run" / "run_0.mcap").touch()
    (tmp_path / "day" / "up").symlink_to(tmp_path)
    (tmp_path / "itself").symlink_to(tmp_path / "itself")
    (tmp_path / "the_same").symlink_to(tmp_path / "day" / "run")
    (tmp_path / "zero.bag").symlink_to(tmp_path / "nowhere.bag")
    found = [path.relative_to(tmp_path).as_posix() for path in expand([tmp_path])]
    assert found == ["day/run", "zero.bag"]


def test_a_tree_of_too_many_folders_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(_extraction, "_MOST_FOLDERS", 8)
    for k in range(7):
        (tmp_path / f"{k}" / "empty").mkdir(parents=True)
        if k == 2:
            assert len(expand([tmp_path])) == 3
    with pytest.raises(RecordingError, match=r"got more than 8 folders .*; name the folder of the recordings"):
        expand([tmp_path])


def test_a_recording_that_is_named_twice_is_taken_once(tmp_path: Path) -> None:
    for name in ("a/a_0.mcap", "b/b_0.mcap", "alone.bag"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "empty").mkdir()
    a, alone, empty = tmp_path / "a", tmp_path / "alone.bag", tmp_path / "empty"
    assert expand([a, a]) == [a]
    assert expand([alone, alone, a / ".." / "a", a]) == [alone, a / ".." / "a"]
    assert expand([a, tmp_path]) == [a, alone, tmp_path / "b", empty]
    assert expand([empty, empty]) == [empty]


def test_a_folder_that_cannot_be_looked_into_is_kept_for_its_error(tmp_path: Path, monkeypatch) -> None:
    for name in ("locked", "open"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}_0.mcap").touch()
    scandir = os.scandir

    def refusing(path):
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    assert expand([tmp_path]) == [tmp_path / "locked", tmp_path / "open"]


def test_a_path_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="no such file or folder"):
        expand([tmp_path / "gone"])
    with pytest.raises(RecordingError, match="no such file or folder"):
        expand([Path("null\0byte")])


def certificate(folder: Path) -> dict[str, str]:
    """Files of a new certificate, which is its own CA, and of its key."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl")
    folder.mkdir()
    key, cert = str(folder / "key.pem"), str(folder / "cert.pem")
    made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert]
    subprocess.run(["openssl", "req", "-x509", *made, "-subj", "/CN=fleet"], check=True, capture_output=True)
    return {"cert": cert, "key": key}


def identify_in_its_own_process(*words: object, **environment: str) -> subprocess.CompletedProcess:
    """`youbot identify`; in a process of its own, since a client of dask that cannot connect leaves a thread behind."""
    command = [sys.executable, "-m", "youbot_dynamics.commands.main", "identify", *map(str, words)]
    return subprocess.run(command, env=dict(os.environ, **environment), capture_output=True, text=True, timeout=100)


def test_a_cluster_by_tls_is_used_with_its_certificates_only(folder: Path, tmp_path: Path) -> None:
    from distributed import LocalCluster
    from distributed.security import Security

    own, foreign = certificate(tmp_path / "own"), certificate(tmp_path / "foreign")
    roles = {f"tls_{role}_{part}": own[part] for role in ("scheduler", "worker", "client") for part in ("cert", "key")}
    with LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        host="127.0.0.1",
        protocol="tls://",
        security=Security(tls_ca_file=own["cert"], require_encryption=True, **roles),
        dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        silence_logs=60,
    ) as cluster:
        words = (expand([folder])[0], "--only", "delay", "--scheduler", cluster.scheduler_address)
        for names, code in ((own, 0), (foreign, 1), ({}, 1)):
            begin = "DASK_DISTRIBUTED__COMM__TLS"
            files = {f"{begin}__CLIENT__{part.upper()}": path for part, path in names.items()}
            files |= {f"{begin}__CA_FILE": names["cert"]} if names else {}
            done = identify_in_its_own_process(*words, "--out", tmp_path / "found", "--overwrite", **files)
            assert done.returncode == code, done.stderr
            if code:
                assert len(done.stderr.splitlines()) == 1 and "a certificate of the same CA" in done.stderr


@pytest.mark.parametrize("address", ["192.0.2.1:8786", "tcp://192.0.2.1:8786", "ws://192.0.2.1:8786"])
def test_another_machine_without_tls_is_refused_unless_it_is_trusted(folder: Path, address: str, monkeypatch) -> None:
    asked: list[object] = []

    def connect(place: object, timeout: float) -> socket.socket:
        asked.append(place)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", connect)
    for trusted, said in ((False, r"another machine without TLS.*--trust-scheduler"), (True, "no answer")):
        with pytest.raises(ParameterError, match=said), fleet_worker([folder], address, trusted=trusted):
            pass
    assert asked == [("192.0.2.1", 8786)], "it was asked before it was trusted"


class Routed(socket.socket):
    """Of a machine with the address 192.0.2.5, which lets a program bind any (ip_nonlocal_bind) and reach any."""

    def bind(self, place: object) -> None:
        pass

    def connect(self, place: object) -> None:
        pass

    def getsockname(self) -> tuple[str, int]:
        return "192.0.2.5", 40_000


@pytest.mark.parametrize(
    ("host", "here"), [("192.0.2.5", True), ("127.0.0.1", True), ("127.8.8.8", True), ("192.0.2.1", False)]
)
def test_an_address_is_of_this_machine_only_where_it_sends_from_it(host: str, here: bool, monkeypatch) -> None:
    monkeypatch.setattr(socket, "socket", Routed)
    assert fleet._on_this_machine(host) is here


GREETINGS = {
    "nothing": b"",
    "http": b"HTTP/1.1 400 Bad Request\r\n\r\n" * 3,
    "ssh": b"SSH-2.0-x\r\n",
    "zeros": b"\0" * 4000,
}


@pytest.mark.parametrize(
    "greeting",
    [pytest.param(GREETINGS[name], id=name, marks=[pytest.mark.slow] if name != "http" else []) for name in GREETINGS],
)
def test_another_protocol_at_the_address_is_one_line(folder: Path, greeting: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection = server.accept()[0]
                    connection.sendall(greeting)
                    connection.close()

        threading.Thread(target=serve, daemon=True).start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        done = identify_in_its_own_process(folder, "--out", folder / "out", "--scheduler", address)
        server.shutdown(socket.SHUT_RDWR)
    lines = done.stderr.splitlines()
    assert done.returncode == 1 and len(lines) == 1, lines
    assert lines[0].startswith(f"error: --scheduler {address}: got ")


NONSENSE = {
    "another type": "lambda task, opened=None: 'I do not care'",
    "another recording": "lambda task, opened=None: m.Extracted(task.number + 1, '')",
    "parts of another type": "lambda task, opened=None: m.Extracted(task.number, str(task.path), parts={'delay': 7})",
    "a file": "lambda task, opened=None: open('/dev/null')",
    "a foreign exception": "lambda task, opened=None: (_ for _ in ()).throw(type('Alien', (Exception,), {})('beep'))",
    "what cannot be read here": "lambda task, opened=None: type('Odd', (), {'__reduce__': lambda s: (int, ('x',))})()",
}


@pytest.mark.parametrize("answer", NONSENSE.values(), ids=NONSENSE.keys())
def test_workers_that_answer_nonsense_are_one_line(folder: Path, cluster, answer: str, tmp_path: Path, capfd) -> None:
    from distributed import Client

    module = "import youbot_dynamics.identification.pipeline._extraction as m; m.real = getattr(m, 'real', m.extract)"
    bag = expand([folder])[0]
    words = ("identify", bag, "--only", "delay", "--out", tmp_path / "o", "--scheduler", cluster.scheduler_address)
    with Client(cluster) as client:
        try:
            client.run(exec, f"{module}; m.extract = {answer}")
            capfd.readouterr()
            assert exit_code(*words) == 1
            said = capfd.readouterr().err
        finally:
            client.run(exec, f"{module}; m.extract = m.real")
    assert sum(line.startswith("error: ") for line in said.splitlines()) == 1 and "Traceback" not in said, said
    assert not (tmp_path / "o").exists()
