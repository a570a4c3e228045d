"""Generated code, written by scripts/write_straight_line.py."""
