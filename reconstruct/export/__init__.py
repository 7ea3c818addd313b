"""Traces handed to other programs; each file one destination."""
