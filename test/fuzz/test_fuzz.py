"""A short run of the fuzzer over every reader; `scripts/fuzz.sh` has the long one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).with_name("fuzz.py")


def fuzz(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", str(FUZZ), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=1200)


@pytest.mark.parametrize("inputs", [2_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_changed_inputs_are_read_or_refused_by_every_reader(tmp_path: Path, inputs: int) -> None:
    done = fuzz("--inputs", inputs, "--seed", 7, "--keep", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    total = int(done.stdout.splitlines()[-1].split()[0])
    assert total >= inputs and done.stdout.count("0 failed;") == 17


def test_the_fuzzer_sees_a_reader_that_fails_and_makes_the_input_again(tmp_path: Path) -> None:
    broken = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import fuzz, samples\n"
        "samples.read_result = lambda p: {}[0] if len(p.read_bytes()) % 5 == 0 else None\n"
        "samples.RESULT = samples.RESULT + b' ' * (1 + 5 - len(samples.RESULT) % 5)\n"
        "sys.exit(fuzz.main())\n"
    )
    words = [sys.executable, "-c", broken, FUZZ.parent, "--reader", "result_json", "--keep", tmp_path]
    done = subprocess.run([*words, "--inputs", "60"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 1 and "KeyError" in done.stdout, done.stdout + done.stderr
    name = next(line.split(":")[0].strip() for line in done.stdout.splitlines() if "KeyError" in line)
    assert (tmp_path / name.replace("/", "_") / "x.json").is_file()
    again = subprocess.run([*words, "--replay", name], capture_output=True, text=True, timeout=600)
    assert again.returncode == 1 and "KeyError" in again.stdout
