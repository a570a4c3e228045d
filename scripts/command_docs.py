"""Write docs/command_line.md from the parser of `youbot`; `--check` only compares."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from youbot_dynamics.commands.main import parser
from youbot_dynamics.files import write_atomically

PAGE = Path(__file__).resolve().parents[1] / "docs" / "command_line.md"


def option_row(action: argparse.Action) -> str:
    """One line of a verb's table."""
    name = ", ".join(action.option_strings) or str(action.metavar or action.dest)
    value = f" {action.metavar}" if action.option_strings and action.metavar else ""
    choices = f" ({', '.join(map(str, action.choices))})" if action.choices else ""
    text = " ".join((action.help or "").replace("%%", "%").split()).replace("|", "\\|")
    return f"| `{name}{value}` | {text}{choices} |"


def verb_section(name: str, verb: argparse.ArgumentParser) -> str:
    """The section of one verb: what it does, its examples, its arguments."""
    rows = [option_row(action) for action in verb._actions if not isinstance(action, argparse._HelpAction)]
    examples = (verb.epilog or "").removeprefix("examples:\n").rstrip()
    lines = "\n".join(line.removeprefix("  ") for line in examples.splitlines())
    table = "| argument | meaning |\n|---|---|\n" + "\n".join(rows) if rows else "No arguments."
    return f"## `youbot {name}`\n\n{verb.description}\n\n```text\n{lines}\n```\n\n{table}\n"


def page() -> str:
    """The whole page."""
    whole = parser()
    verbs = next(a for a in whole._actions if isinstance(a, argparse._SubParsersAction)).choices
    codes = " ".join(line.strip() for line in (whole.epilog or "").split("exit codes:")[1].splitlines()).strip()
    return "\n".join(
        [
            "# Command line\n",
            "Generated from the parser by `scripts/command_docs.py`; a test compares them. Run `youbot COMMAND` in the",
            "virtual environment, or `ros2 run youbot_dynamics youbot COMMAND` where ROS 2 is sourced.\n",
            f"Exit codes: {codes}.\n",
            'The shell completes verbs, options and files after `eval "$(register-python-argcomplete youbot)"`,',
            "which you can put into `~/.bashrc`; zsh and fish: <https://kislyuk.github.io/argcomplete/>.\n",
            *(verb_section(name, verb) for name, verb in verbs.items()),
        ]
    )


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page() else 1)
    write_atomically(PAGE, page())
