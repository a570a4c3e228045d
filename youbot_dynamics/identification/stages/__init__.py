"""Stages of an identification: each takes what it needs out of every recording, then fits all of it together."""
