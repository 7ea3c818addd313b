"""Comparing two rollouts or traces span by span."""
