"""Exceptions of the reader: what happened, where (file:line), what to do."""


class ReconstructError(Exception):
    """Base of the errors; the message is one line for a person, `exit_code` the CLI's."""

    exit_code = 1


class UsageError(ReconstructError):
    """The call itself is off."""

    exit_code = 2


class SqlError(UsageError):
    """A query cannot be answered: it is wrong, not only a query, or at a limit."""

    def __init__(self, message: str, *, excerpt: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.excerpt = excerpt
        """The line of the query that is wrong, and a caret below the place; empty when unknown."""


class InputError(ReconstructError):
    """There is nothing to read, or it cannot be read."""

    exit_code = 3


class DestinationError(ReconstructError):
    """The destination of an export refused or cannot be reached."""

    exit_code = 4
