"""Exceptions that gymlog raises outside the hot path; call sites never raise."""


class GymlogError(Exception):
    """Base of gymlog's own errors: what happened, where, what to do."""


class InvalidRolloutIdError(GymlogError, ValueError):
    """A rollout id that cannot stand in a URL path."""


class FleetError(GymlogError, RuntimeError):
    """The example fleet could not start, or a server of it failed."""


class FleetTimeoutError(FleetError, TimeoutError):
    """A server of the example fleet took too long to be ready."""
