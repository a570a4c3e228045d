"""Headless Chromium for the tests of the report."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

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


# Looks into frames of several widths and writes down what it finds; `%s` are further fields.
_LOOK = """
window.onload = () => {
  const found = [...document.querySelectorAll("iframe")].map((frame) => {
    const page = frame.contentDocument, all = (what) => [...page.querySelectorAll(what)];
    const root = page.documentElement;
    const inside = (box) => box.getBoundingClientRect().right <= root.clientWidth + 0.5;
    return {
      width: root.clientWidth,
      scroll: root.scrollWidth,
      unscoped: all("th:not([scope])").length,
      levels: all("h1,h2,h3,h4,h5,h6").map((h) => Number(h.tagName[1])),
      %s
    };
  });
  document.body.innerHTML = "<pre></pre>";
  document.querySelector("pre").textContent = JSON.stringify(found);
};
"""


def looks(folder: Path, page: str, fields: str) -> dict[int, dict[str, Any]]:
    """What a page looks like on a phone and on a desk, by width [px]; `fields` are more fields in JavaScript."""
    text, script = html.escape(page), _LOOK % fields
    frames = "".join(
        f'<iframe width="{w}" height="900" style="border:0" srcdoc="{text}"></iframe>' for w in (360, 1280)
    )
    (folder / "look.html").write_text(f"<!DOCTYPE html><body>{frames}<script>{script}</script>", encoding="utf-8")
    done = chromium(folder, "--dump-dom", f"file://{folder / 'look.html'}")
    assert complaints(done) == []
    written = re.search(r"<pre>(.*)</pre>", done.stdout)
    assert written is not None, done.stdout[:2000]
    found = {look["width"]: look for look in json.loads(html.unescape(written[1]))}
    assert sorted(found) == [360, 1280]
    return found
