"""Clocks, stamps and delays: how late a motion follows its command, and what the stamps are worth."""
