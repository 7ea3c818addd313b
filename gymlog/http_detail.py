"""How much of OpenTelemetry's HTTP conventions a line repeats.

Most lines of a gym are HTTP spans between its own servers. By default such a line leaves out what
another attribute of it, or the gym itself, says already: `server.address` and `server.port` beside
`url.full` in a call within the fleet, and `url.scheme` of plain http. That is a tenth of all bytes.
"""

import functools

from gymlog.settings import HTTP_ATTRIBUTES

__all__ = ["is_full"]


@functools.cache
def is_full() -> bool:
    """Say whether every attribute that the conventions require is written; read once."""
    return HTTP_ATTRIBUTES.value() == "full"
