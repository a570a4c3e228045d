"""Headless Chromium for the tests of the report."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def chromium(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Chromium without a window, a network or a profile of its own."""
    offline = ["--host-resolver-rules=MAP * ~NOTFOUND", "--proxy-server=127.0.0.1:9", "--disable-background-networking"]
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += ["--enable-logging=stderr", "--no-first-run", f"--user-data-dir={folder / 'profile'}", *offline, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done


def complaints(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What Chromium wrote on its console."""
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]
