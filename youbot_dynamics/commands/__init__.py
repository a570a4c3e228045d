"""The program `youbot` and its verbs."""
