"""A clone of the repository whose Python only writes down what it was asked to do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from repository import ROOT

COPIED = ("scripts", "setup.py", "setup.cfg", "pyproject.toml", "constraints.txt")
SHOW = 'source "$CLONE/scripts/environment.sh"; env; printf "MODE=%s\\nVENV=%s\\n" "$MODE" "$VENV"'
# Makes a `.venv` whose python only writes down what it was asked to do.
STAND_IN = """\
#!/usr/bin/env bash
case "$*" in
    *ensurepip*) exit {venv_missing} ;;
    *"version_info < (3, 10)"*) exit {too_old} ;;
    *"import rclpy"*) exit {rclpy_missing} ;;
    "-m venv"*)
        echo "$*" >>"{log}"
        mkdir -p "${{!#}}/bin"
        cat >"${{!#}}/bin/python" <<'END'
#!/usr/bin/env bash
case "$*" in "-c " | *hashlib*) exec "{real}" "$@" ;; esac
echo "$*" >>"{log}"
exit {pip_fails}
END
        chmod +x "${{!#}}/bin/python" ;;
    *hashlib*) exec "{real}" -c \\
        "import sys; {another} and setattr(sys, 'version_info', (3, 99)); exec(sys.argv[1])" "$2" ;;
    *) exec "{real}" "$@" ;;
esac
"""


class Clone:
    """A copy of what the set-up needs, below a path with a space."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "a clone"
        self.log = folder / "asked"
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.root.mkdir()
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, self.root / name)
        self.python_is()

    def python_is(self, **faults: bool) -> None:
        names = ("venv_missing", "too_old", "rclpy_missing", "pip_fails", "another")
        text = STAND_IN.format(
            log=self.log, real=sys.executable, **{name: int(faults.get(name, False)) for name in names}
        )
        python = self.bin / "python3"
        python.write_text(text)
        python.chmod(0o755)

    def run(self, script: str = SHOW, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "HOME": str(self.bin),
            "PATH": f"{self.bin}:{os.defpath}",
            "CLONE": str(self.root),
            **variables,
        }
        return subprocess.run(["bash", "-euc", script], env=environment, cwd="/", capture_output=True, text=True)

    def asked(self) -> list[str]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return lines
