"""Which route template an ASGI request matched, read from the scope without a framework's help.

Starlette and FastAPI leave the matched endpoint in the scope, and the router that was asked
first; a template is found again from these by attributes alone, so no framework is imported and
any version with the same shape works. Cost: a few lookups for a route of the application itself;
below a mount, one regular expression for each mount that was asked on the way.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gymlog.path_context import split_root

__all__ = ["route_template"]

_MOUNT_TAIL = "/{path}"
"""What Starlette appends to a mount's own path in its `path_format`."""


def route_template(scope: Mapping[str, Any]) -> str | None:  # Any: an ASGI scope
    """Return the template of the scope's endpoint, e.g. `/items/{item_id}`, or None.

    The application's root path and the templates of mounts are part of it. Never raises.
    """
    try:
        return _route_template(scope)
    except Exception:  # noqa: BLE001 - a router of an unknown kind may have anything in it
        return None


def _route_template(scope: Mapping[str, Any]) -> str | None:  # Any: an ASGI scope
    endpoint = scope.get("endpoint")
    route = scope.get("route")
    template: str | None
    if "app_root_path" not in scope and getattr(route, "endpoint", None) is endpoint:
        base = scope.get("root_path")
        if "fastapi" in scope:
            context = scope["fastapi"].get("effective_route_context")
            if getattr(context, "original_route", None) is route:
                route = context  # an included router's prefix is only here
        template = getattr(route, "path_format", None)
    else:
        base = scope.get("app_root_path", scope.get("root_path", ""))
        _, path = split_root(scope["path"], base)
        template = _find(getattr(scope.get("router"), "routes", ()), path, endpoint)
    return base.rstrip("/") + template if base and template is not None else template


def _find(routes: Iterable[Any], path: str, endpoint: object) -> str | None:  # Any: duck-typed
    """Return the template of the route that leads `path` to `endpoint`."""
    for route in _flattened(routes):
        if getattr(route, "endpoint", None) is endpoint:
            if route.path_regex.match(path):
                return str(route.path_format)
        elif hasattr(route, "host_regex"):
            if template := _find(route.routes, path, endpoint):
                return template
        elif hasattr(route, "routes") and (match := route.path_regex.match(path)):
            own = str(route.path_format)
            below = _find(_routes_below(route), f"/{match['path']}", endpoint)
            if below is not None:
                return own.removesuffix(_MOUNT_TAIL) + below
            if getattr(route, "app", None) is endpoint:
                return own
    return None


def _routes_below(mount: Any) -> Iterable[Any]:  # Any: duck-typed routes
    """Return the routes of a mounted application, which middleware may wrap."""
    app = mount
    while not (routes := getattr(app, "routes", ())):
        app = getattr(app, "app", None)
        if app is None:
            break
    return routes


def _flattened(routes: Iterable[Any]) -> Iterator[Any]:  # Any: duck-typed routes
    """Yield routes, those of included routers (FastAPI 0.137 and later) in their own place."""
    for route in routes:
        contexts = getattr(route, "effective_route_contexts", None)
        if contexts is None:
            yield route
            continue
        for context in contexts():
            yield context.starlette_route or context
