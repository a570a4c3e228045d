"""The program `youbot` and its commands."""
