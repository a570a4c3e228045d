"""Where the repository stands, and the recordings of real robots beside it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
CASES = ROOT.parent / "shared" / "cases"  # inputs of other robots that were once read wrongly
