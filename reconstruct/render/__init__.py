"""Traces drawn for a person; each file one kind of drawing."""
