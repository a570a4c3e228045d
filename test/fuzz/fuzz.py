"""Changed inputs for every reader: read, or refused with a YoubotDynamicsError, within 10 s of processor time and 1 GB.

The inputs are made by this program from small sound ones; each is named READER/SEED/INDEX, and made again by that name.
Whatever ends a reader otherwise (another exception, a crash, too much time or memory) is a failure, its input is kept.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import samples  # noqa: E402

from youbot_dynamics.errors import YoubotDynamicsError  # noqa: E402

MOST_SECONDS = 10.0  # of processor time
MOST_MEMORY = 1_000_000  # kB resident
ADDRESSES = 6_000_000_000  # bytes: keeps the machine from swapping, far above what is allowed
BLOCK = 500  # inputs of one child process


@dataclass
class Tally:
    """What became of the inputs of one reader."""

    read: int = 0
    refused: int = 0
    slowest: float = 0.0
    memory: int = 0
    failures: list[str] = field(default_factory=list)


def prepare(reader: samples.Reader, folder: Path, data: bytes) -> None:
    """Put an input where its reader looks for it."""
    for name, content in {**reader.beside, reader.file: data}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def changed(reader: samples.Reader, seed: int, index: int) -> bytes:
    """The input of that name; 0 is the sound one."""
    return reader.mutate(reader.sample, Random(f"{reader.name}/{seed}/{index}")) if index else reader.sample


def attempt(reader: samples.Reader, folder: Path) -> tuple[str, str]:
    """Verdict and what went wrong."""
    try:
        reader.read(folder)
    except YoubotDynamicsError as refused:
        try:
            samples.check_error(refused)
        except AssertionError as problem:
            return "failure", f"an error that is not printable or too long: {problem}"
        return "refused", ""
    except BaseException:
        return "failure", traceback.format_exc()
    return "read", ""


def child(reader: samples.Reader, seed: int, first: int, last: int, folder: Path, pipe: int) -> None:
    """Work inputs off; tells the parent the number of each before, and its verdict after."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    for index in range(first, last):
        data = changed(reader, seed, index)
        prepare(reader, folder, data)
        os.write(pipe, struct.pack("<qdq", index, -1.0, 0))
        signal.setitimer(signal.ITIMER_PROF, 1.2 * MOST_SECONDS)  # ends this process where Python cannot
        before = time.process_time()
        verdict, problem = attempt(reader, folder)
        spent = time.process_time() - before
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if spent > MOST_SECONDS or memory > MOST_MEMORY:
            verdict, problem = "failure", f"{spent:.1f} s of processor time, {memory / 1000:.0f} MB"
        (folder / "problem").write_text(problem, errors="backslashreplace")
        code = ("read", "refused", "failure").index(verdict)
        os.write(pipe, struct.pack("<qdq", code, spent, memory))
        if code == 2:
            break


def run_block(reader: samples.Reader, seed: int, first: int, last: int, folder: Path, tally: Tally, keep: Path) -> int:
    """Fork a child for inputs first to last - 1; the number of the first one that is left."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    incoming, outgoing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(incoming)
        child(reader, seed, first, last, folder, outgoing)
        os._exit(0)
    os.close(outgoing)
    index, ended, problem = first - 1, True, ""
    with os.fdopen(incoming, "rb") as stream:
        while len(told := stream.read(24)) == 24:
            value, spent, memory = struct.unpack("<qdq", told)
            if spent < 0.0:
                index, ended = value, False
                continue
            ended = True
            tally.slowest, tally.memory = max(tally.slowest, spent), max(tally.memory, memory)
            tally.read += value == 0
            tally.refused += value == 1
            if value == 2:
                problem = (folder / "problem").read_text()
    _, status = os.waitpid(process, 0)
    if not ended or status:  # also an error in what makes the inputs
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        problem = f"the process ended: {signal.Signals(number).name if number else status}"
    if problem:
        name = f"{reader.name}/{seed}/{index}"
        tally.failures.append(f"{name}: {problem.strip().splitlines()[-1][:300]}")
        kept = keep / name.replace("/", "_")
        kept.mkdir(parents=True, exist_ok=True)
        (kept / Path(reader.file).name).write_bytes(changed(reader, seed, index))
        (kept / "problem.txt").write_text(problem, errors="backslashreplace")
    return index + 1


def fuzz(chosen: list[samples.Reader], inputs: int, seed: int, keep: Path, room: Path) -> dict[str, Tally]:
    """So many inputs in all, for each reader its share."""
    tallies = {}
    shares = sum(reader.share for reader in chosen)
    for reader in chosen:
        count = -(-inputs * reader.share // shares)
        tally = tallies[reader.name] = Tally()
        began, done = time.monotonic(), 0
        while done < count and len(tally.failures) < 20:
            done = run_block(reader, seed, done, min(count, done + BLOCK), room / reader.name, tally, keep)
        rate = done / (time.monotonic() - began)
        print(
            f"{reader.name:13} {done:6} inputs: "
            f"{tally.read:6} read, {tally.refused:6} refused, {len(tally.failures)} failed; "
            f"slowest {tally.slowest:.2f} s, {tally.memory / 1000:.0f} MB, {rate:.0f}/s",
            flush=True,
        )
        for failure in tally.failures:
            print(f"  {failure}", flush=True)
    return tallies


def main() -> int:
    """Fuzz; 1 where an input failed."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz.sh", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="in all, shared by the readers (default: 100000)")
    parser.add_argument("--seed", type=int, default=1, help="of the changes (default: 1)")
    parser.add_argument("--reader", action="append", default=[], metavar="NAME", help="only this one; may be repeated")
    parser.add_argument(
        "--replay", metavar="READER/SEED/INDEX", help="make one input again, read it and say what happens"
    )
    parser.add_argument("--keep", type=Path, default=Path("fuzz_failures"), help="folder for inputs that failed")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        room = Path(made)
        table = samples.readers(room)
        names = given.reader or ([given.replay.split("/")[0]] if given.replay else list(table))
        if unknown := [name for name in names if name not in table]:
            parser.error(f"no reader {unknown[0]}; there are {', '.join(table)}")
        chosen = [table[name] for name in names]
        for reader in chosen:  # imports and compiles once, and shows that the sound ones are sound
            prepare(reader, room / "sound" / reader.name, reader.sample)
            reader.read(room / "sound" / reader.name)
        if given.replay:
            name, seed, index = given.replay.split("/")
            prepare(table[name], room / "again", changed(table[name], int(seed), int(index)))
            verdict, problem = attempt(table[name], room / "again")
            print(f"{given.replay}: {verdict}\n{problem}", end="")
            return int(verdict == "failure")
        began = time.monotonic()
        tallies = fuzz(chosen, given.inputs, given.seed, given.keep, room)
    total = sum(tally.read + tally.refused + len(tally.failures) for tally in tallies.values())
    failed = sum(len(tally.failures) for tally in tallies.values())
    print(f"{total} inputs, {failed} failed, {total / (time.monotonic() - began):.0f} inputs/s, seed {given.seed}")
    if failed:
        print(f"kept in {given.keep}; again: scripts/fuzz.sh --replay READER/SEED/INDEX")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
