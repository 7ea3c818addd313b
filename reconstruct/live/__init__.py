"""Logs while they grow: what is new in them, and what is going on."""
