"""The set-up that demo.sh and test.sh share, with a stand-in for Python: nothing is downloaded."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from clones import SHOW, Clone
from repository import ROOT


@pytest.fixture
def clone(tmp_path):
    return Clone(tmp_path)


def variables_of(answer: subprocess.CompletedProcess[str]) -> dict[str, str]:
    assert answer.returncode == 0, answer.stderr
    return dict(line.split("=", 1) for line in answer.stdout.splitlines() if "=" in line)


def error_of(answer: subprocess.CompletedProcess[str]) -> str:
    assert answer.returncode == 1
    lines = [line for line in answer.stderr.splitlines() if "error:" in line]
    assert len(lines) == 1
    return lines[0]


def test_first_run_makes_the_environment_and_the_second_leaves_it(clone):
    first = clone.run()
    assert variables_of(first)["VENV"] == str(clone.root / ".venv")
    venv, pip = clone.asked()
    assert venv == f"-m venv {clone.root}/.venv"
    assert pip.startswith("-m pip install") and pip.endswith("-c constraints.txt -e .[ros]")
    second = clone.run()
    assert second.returncode == 0
    assert second.stderr == ""
    assert clone.asked() == []


def test_what_only_tests_need_is_added_when_they_first_run(clone):
    clone.run()
    clone.asked()
    assert clone.run(SETUP_EXTRA="test").returncode == 0
    (pip,) = clone.asked()
    assert pip.endswith("-c constraints.txt -e .[ros,test]")
    assert clone.run(SETUP_EXTRA="test").stderr == ""
    assert clone.run().stderr == ""
    assert clone.asked() == []
    with (clone.root / "setup.py").open("a") as file:
        file.write("\n# changed\n")
    assert "out of date" in clone.run().stderr
    assert clone.asked()[-1].endswith("-e .[ros]")
    assert clone.run(SETUP_EXTRA="test").returncode == 0
    assert clone.asked()[-1].endswith("-e .[ros,test]")


@pytest.mark.parametrize("name", ["test", "repeat_ros_tests", "soak", "fuzz"])
def test_scripts_that_run_tests_ask_for_what_these_need(name):
    lines = (ROOT / "scripts" / f"{name}.sh").read_text(encoding="utf-8").splitlines()
    assert "SETUP_EXTRA=test" in lines[: lines.index('source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"')]


@pytest.mark.parametrize("words", [["--help"], ["--slow", "-h"]])
def test_help_of_the_tests_makes_the_environment_and_runs_none(clone, words):
    answer = clone.run(f'bash "$CLONE/scripts/test.sh" {" ".join(words)}')
    assert answer.returncode == 0 and answer.stdout.startswith("Check style, types and behaviour.")
    assert "--changed" in answer.stdout and "set -euo" not in answer.stdout
    venv, pip = clone.asked()
    assert venv.startswith("-m venv") and pip.endswith("-e .[ros,test]")


def test_the_demo_sets_up_only_what_it_needs():
    assert "SETUP_EXTRA" not in (ROOT / "scripts" / "demo.sh").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["setup.py", "constraints.txt", "setup.cfg", "pyproject.toml"])
def test_changed_description_makes_it_anew(clone, name):
    clone.run()
    clone.asked()
    with (clone.root / name).open("a") as file:
        file.write("\n# changed\n")
    assert "out of date" in clone.run().stderr
    assert len(clone.asked()) == 2


def test_moved_clone_makes_it_anew(clone):
    clone.run()
    clone.asked()
    clone.root = clone.root.rename(clone.root.parent / "moved")
    assert "out of date" in clone.run().stderr


def test_another_python_first_on_path_leaves_it_and_one_that_is_asked_for_replaces_it(clone):
    clone.run()
    clone.asked()
    clone.python_is(another=True)
    assert clone.run().stderr == "" and clone.asked() == []
    assert "out of date" in clone.run(PYTHON="python3").stderr
    assert len(clone.asked()) == 2


def test_half_made_environment_is_made_anew(clone):
    clone.python_is(pip_fails=True)
    assert "pip could not install" in error_of(clone.run())
    clone.python_is()
    clone.asked()
    (clone.root / ".venv" / "left over").touch()
    assert "half made" in clone.run().stderr
    assert len(clone.asked()) == 2
    assert not (clone.root / ".venv" / "left over").exists()


def test_foreign_environment_is_not_removed(clone):
    (clone.root / ".venv").mkdir()
    (clone.root / ".venv" / "mine").touch()
    assert "move it away" in error_of(clone.run())
    assert (clone.root / ".venv" / "mine").exists()


def test_two_runs_at_once_make_one_environment(clone):
    both = 'bash -euc "$SHOW" & first=$!; bash -euc "$SHOW" & second=$!; wait $first && wait $second'
    assert clone.run(both, SHOW=SHOW).returncode == 0
    assert len(clone.asked()) == 2


@pytest.mark.parametrize(
    ("fault", "message"), [("venv_missing", "apt install python3-venv"), ("too_old", "Python 3.10 or newer")]
)
def test_unfit_python_is_named_in_one_line(clone, fault, message):
    clone.python_is(**{fault: True})
    assert message in error_of(clone.run())
    assert not (clone.root / ".venv").exists()


def test_missing_python_is_named_in_one_line(clone):
    assert "python9 is missing" in error_of(clone.run(PYTHON="python9"))


def test_nothing_that_runs_can_reach_another_robot(clone):
    variables = variables_of(
        clone.run(
            ROS_DOMAIN_ID="0",
            ROS_LOCALHOST_ONLY="0",
            ROS_STATIC_PEERS="192.0.2.1",
            ROS_DISCOVERY_SERVER="192.0.2.1:11811",
            RMW_IMPLEMENTATION="rmw_cyclonedds_cpp",
            _ROS_WHEELS_BOOTSTRAP_COMPLETE="1",
        )
    )
    assert variables["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "LOCALHOST"
    assert 1 <= int(variables["ROS_DOMAIN_ID"]) <= 101
    gone = {
        "ROS_LOCALHOST_ONLY",
        "ROS_STATIC_PEERS",
        "ROS_DISCOVERY_SERVER",
        "RMW_IMPLEMENTATION",
        "_ROS_WHEELS_BOOTSTRAP_COMPLETE",
    }
    assert gone.isdisjoint(variables)


def test_other_distribution_is_dropped_and_said(clone):
    answer = clone.run(
        ROS_DISTRO="humble",
        ROS_VERSION="2",
        AMENT_PREFIX_PATH="/ws/install/a:/opt/ros/humble",
        COLCON_PREFIX_PATH="/ws/install",
        PYTHONPATH="/ws/install/a/lib/python:/mine:/opt/ros/humble/lib/python",
        LD_LIBRARY_PATH="/opt/ros/humble/lib:/opt/ros/humble-not",
    )
    variables = variables_of(answer)
    assert "'humble'" in answer.stderr
    assert variables["MODE"] == "wheels"
    assert variables["PYTHONPATH"] == "/mine"
    assert variables["LD_LIBRARY_PATH"] == "/opt/ros/humble-not"
    assert not any(name.startswith(("AMENT_", "COLCON_")) for name in variables)
    assert {"ROS_DISTRO", "ROS_VERSION"}.isdisjoint(variables)


@pytest.mark.parametrize("distro", ["jazzy", "kilted"])
def test_a_sourced_ros_is_used_with_its_own_packages(clone, distro):
    sourced = {
        "ROS_DISTRO": distro,
        "AMENT_PREFIX_PATH": f"/opt/ros/{distro}",
        "PYTHONPATH": f"/opt/ros/{distro}/lib/python",
    }
    variables = variables_of(clone.run(**sourced))
    assert variables["MODE"] == "sourced"
    assert variables["PYTHONPATH"] == sourced["PYTHONPATH"]
    venv, numpy, pip = clone.asked()
    assert venv == f"-m venv --system-site-packages {clone.root}/.venv"
    assert "numpy" in numpy
    assert "-e .[program] numpy==" in pip and "ros" not in pip and "ruff" not in pip
    assert clone.run(SETUP_EXTRA="test", **sourced).returncode == 0
    pip = clone.asked()[-1]
    assert "-e .[program,test] numpy==" in pip and "ruff==" in pip and "mypy==" in pip


def test_another_sourced_ros_makes_the_environment_anew(clone):
    clone.run(ROS_DISTRO="jazzy")
    assert "out of date" in clone.run(ROS_DISTRO="kilted").stderr


def test_a_sourced_ros_without_rclpy_is_refused(clone):
    clone.python_is(rclpy_missing=True)
    assert "cannot import rclpy" in error_of(clone.run(ROS_DISTRO="jazzy"))


def guarded_session(folder: Path, tests: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run tests under our conftest.py alone, all of the folder or those that words choose."""
    for path in (ROOT / "test" / "conftest.py", ROOT / "test" / "support" / "machine_watch.py"):
        shutil.copy(path, folder)
    (folder / "test_guarded.py").write_text(textwrap.dedent(tests))
    command = [sys.executable, "-m", "pytest", "-q", "-rR", "-p", "no:cacheprovider", "-c", os.devnull, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, **variables})


def test_skip_without_allowed_reason_fails_the_session(tmp_path):
    tests = """
        import pytest

        def test_passes():
            pass

        def test_allowed():
            pytest.skip("the data folder is not here")

        @pytest.mark.xfail(reason="known", strict=True)
        def test_expected_failure():
            assert False

        @pytest.mark.skipif("SKIP" in __import__("os").environ, reason="felt like it")
        def test_not_allowed():
            pass
        """
    good = guarded_session(tmp_path, tests)
    assert good.returncode == 0, good.stdout
    bad = guarded_session(tmp_path, tests, SKIP="1")
    assert bad.returncode == 1
    assert "test_guarded.py::test_not_allowed: felt like it" in bad.stdout


@pytest.mark.parametrize("words", [(), ("-m", "slow"), ("-n", "2")])
def test_a_session_without_a_test_fails(tmp_path, words):
    """Such as one whose only module skips itself, with an allowed reason; colcon takes exit code 5 for a success."""
    tests = """
        import pytest

        pytest.importorskip("launch_ros_that_is_absent", reason="launch_ros is not installed")
        """
    assert guarded_session(tmp_path, tests, *words).returncode == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("words", [("-k", "absent"), ("test_guarded.py",)])
def test_a_session_without_a_test_that_was_chosen_says_so(tmp_path, words):
    assert guarded_session(tmp_path, "", *words).returncode == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_failed_test_runs_again_only_if_the_machine_stood_still(tmp_path):
    """A sleeper that is stopped wakes late."""
    pytest.importorskip("pytest_rerunfailures")
    tests = """
        import signal, time

        runs = []

        def test_stalled(request):
            runs.append("stalled")
            sleeper = request.config.pluginmanager.get_plugin("stall_guard")._watch._sleeper
            sleeper.send_signal(signal.SIGSTOP)
            time.sleep(0.2)
            sleeper.send_signal(signal.SIGCONT)
            time.sleep(0.1)
            assert runs.count("stalled") == 2

        def test_smooth():
            runs.append("smooth")
            assert runs.count("smooth") == 2
        """
    told = guarded_session(tmp_path, tests)
    assert told.returncode == 1
    assert "RERUN test_guarded.py::test_stalled" in told.stdout and "1 failed, 1 passed, 1 rerun" in told.stdout


def test_the_main_process_rests_while_its_workers_run(tmp_path):
    """pytest-rerunfailures 12, which Ubuntu 24.04 has, reads again and again what a worker closed."""
    tests = """
        import os, time
        from pathlib import Path

        def used():  # [s] of processor
            words = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
            return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

        def test_rest():
            before = used()
            time.sleep(2.0)
            assert used() - before < 0.2
        """
    told = guarded_session(tmp_path, tests, "-n", "1")
    assert told.returncode == 0, told.stdout


def test_an_id_longer_than_a_line_that_colcon_reads_is_refused(tmp_path):
    tests = """
        import pytest

        @pytest.mark.parametrize("text", [""], ids=["x" * 1000])
        def test_long(text):
            pass
        """
    told = guarded_session(tmp_path, tests)
    assert told.returncode == pytest.ExitCode.INTERNAL_ERROR
    assert "give its case an id" in told.stdout + told.stderr
