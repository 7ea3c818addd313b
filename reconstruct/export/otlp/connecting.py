"""The way to a target, over its protocol."""

import os

from reconstruct.errors import UsageError
from reconstruct.export.otlp.settings import Target
from reconstruct.export.otlp.transport import Transport

__all__ = ["connect"]


def connect(target: Target) -> Transport:
    """Set up the way to a target; nothing is sent yet. Raises `UsageError` for unreadable files."""
    # Each is imported when it is used: together they take most of a second.
    try:
        if target.protocol == "grpc":
            os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # else it writes to stderr by itself
            from reconstruct.export.otlp.over_grpc import GrpcTransport

            return GrpcTransport(target)
        from reconstruct.export.otlp.over_http import HttpTransport

        return HttpTransport(target)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot set up {target.protocol} for {target.signal}: {error}") from error
