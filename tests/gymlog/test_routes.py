"""Route templates: exact for every way in which Starlette and FastAPI nest applications."""

import asyncio

import pytest
from fastapi import APIRouter, FastAPI
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Host, Mount, Route, Router

from gymlog import testing
from gymlog.routes import route_template
from gymlog.server import ServerMiddleware


async def answer(request):
    return PlainTextResponse("ok")


def endpoint():
    """Return a new endpoint, so that each route has one of its own."""

    async def answer_too(request):
        return PlainTextResponse("ok")

    return answer_too


def fastapi_app():
    """A FastAPI application that nests in every way."""

    deep = APIRouter(prefix="/deep")
    deep.add_api_route("/{z}", one_endpoint := (lambda z: z))
    deep.add_api_route("/again/{z}", one_endpoint)
    router = APIRouter(prefix="/router")
    router.add_api_route("/{y}", lambda y: y)
    router.include_router(deep, prefix="/within")
    router.add_route("/plain/{p}", answer)
    router.mount("/mounted", Starlette(routes=[Route("/{m}", endpoint())]))
    inner = FastAPI()
    inner.add_api_route("/i/{item_id}", lambda item_id: item_id)
    inner.include_router(deep)
    app = FastAPI()
    app.add_api_route("/items/{item_id}", lambda item_id: item_id, methods=["GET", "PUT"])
    app.add_api_route("/typed/{count:int}", lambda count: count)
    app.add_api_route("/files/{path:path}", lambda path: path)
    app.add_route("/starlette/{s}", endpoint())
    app.include_router(router, prefix="/api")
    app.include_router(router, prefix="/v2")
    app.mount("/inner", inner)
    app.mount("/tenant/{tenant}", inner)
    app.mount("/star", Starlette(routes=[Mount("/m", Router([Route("/{n}", endpoint())]))]))
    app.router.routes.append(Host("other.local", Router([Route("/on/{host}", endpoint())])))

    async def raw(scope, receive, send):
        await PlainTextResponse("raw")(scope, receive, send)

    app.mount("/raw", raw)
    return app


@pytest.mark.parametrize(
    ("method", "path", "route"),
    [
        ("GET", "/items/3", "/items/{item_id}"),
        ("PUT", "/items/3", "/items/{item_id}"),
        ("DELETE", "/items/3", "/items/{item_id}"),
        ("GET", "/typed/3", "/typed/{count}"),
        ("GET", "/files/a/b/c", "/files/{path}"),
        ("GET", "/starlette/x", "/starlette/{s}"),
        ("GET", "/docs", "/docs"),
        ("GET", "/api/router/7", "/api/router/{y}"),
        ("GET", "/v2/router/7", "/v2/router/{y}"),
        ("GET", "/api/router/within/deep/7", "/api/router/within/deep/{z}"),
        ("GET", "/v2/router/within/deep/again/7", "/v2/router/within/deep/again/{z}"),
        ("GET", "/api/plain/7", "/api/plain/{p}"),
        ("GET", "/api/mounted/7", "/api/mounted/{m}"),
        ("GET", "/inner/i/7", "/inner/i/{item_id}"),
        ("GET", "/inner/deep/again/7", "/inner/deep/again/{z}"),
        ("GET", "/tenant/t1/i/7", "/tenant/{tenant}/i/{item_id}"),
        ("GET", "/tenant/t1/deep/7", "/tenant/{tenant}/deep/{z}"),
        ("GET", "/tenant/t1/nothing", "/tenant/{tenant}/{path}"),
        ("GET", "/star/m/7", "/star/m/{n}"),
        ("GET", "/raw/whatever/7", "/raw/{path}"),
        ("GET", "/nothing", None),
        ("GET", "/items/3/", None),
    ],
)
@pytest.mark.parametrize("root_path", ["", "/proxy"])
def test_the_template_is_that_of_the_matched_route(telemetry, asgi, method, path, route, root_path):
    """Prefixes of includes, templates of mounts and the root path all belong to it."""
    app = ServerMiddleware(fastapi_app())
    reply = asyncio.run(asgi(app, method, root_path + path, root_path=root_path))
    if reply.status == 404 and "mounted" in path:
        pytest.skip("this FastAPI leaves out the mounts of an included router")
    (span,) = telemetry.spans
    expected = None if route is None else root_path + route
    assert span["attributes"].get("http.route") == expected
    assert span["name"] == (method if expected is None else f"{method} {expected}")


def test_a_host_route_leads_to_its_own_routes(telemetry, asgi, asgi_scope):
    """A Host adds nothing to the path."""
    app = ServerMiddleware(fastapi_app())

    async def no_message():
        raise AssertionError

    async def discard(message):
        del message

    scope = asgi_scope("GET", "/on/7") | {"headers": [(b"host", b"other.local")]}
    asyncio.run(app(scope, no_message, discard))
    assert telemetry.spans[0]["name"] == "GET /on/{host}"


def test_a_root_path_that_the_proxy_has_cut_off_is_part_of_the_template(telemetry, asgi):
    """FastAPI(root_path=…), by now deprecated, behind a proxy that strips the prefix."""
    app = FastAPI()
    app.root_path = "/proxy"
    app.add_api_route("/items/{item_id}", lambda item_id: item_id)
    asyncio.run(asgi(ServerMiddleware(app), "GET", "/items/3", root_path="/proxy"))
    assert telemetry.spans[0]["attributes"]["http.route"] == "/proxy/items/{item_id}"


def test_an_application_below_an_uninstrumented_mount_has_the_whole_template(telemetry, asgi):
    """The outermost router is in the scope, so the mount's parameters stay parameters."""
    inner = Starlette(routes=[Route("/i/{item_id}", answer)])
    outer = Starlette(routes=[Mount("/t/{tenant}", ServerMiddleware(inner))])
    asyncio.run(asgi(outer, "GET", "/t/acme/i/3"))
    assert telemetry.spans[0]["name"] == "GET /t/{tenant}/i/{item_id}"


def test_without_a_route_in_the_scope_the_endpoint_tells():
    """Starlette before 1.0 leaves only the endpoint."""
    first, second = endpoint(), endpoint()
    router = Router([Route("/a/{x}", first), Route("/b/{x}", second), Route("/c", second)])
    scope = {"path": "/c", "router": router, "endpoint": second}
    assert route_template(scope) == "/c"
    assert route_template(scope | {"path": "/b/7"}) == "/b/{x}"
    assert route_template(scope | {"endpoint": first}) is None


def test_a_router_of_another_kind_gives_no_template():
    """Frameworks that use the same scope keys otherwise do no harm."""
    assert route_template({"path": "/", "endpoint": answer}) is None
    assert route_template({"path": "/", "endpoint": answer, "router": object()}) is None
    odd = type("Odd", (), {"routes": [object(), None]})()
    assert route_template({"path": "/", "endpoint": answer, "router": odd}) is None
    odd.routes = [type("Odd", (), {"endpoint": answer})]
    assert route_template({"path": "/", "endpoint": answer, "router": odd}) is None


segments = st.sampled_from(["a", "b", "{p}", "{q}"])
templates = st.lists(segments, min_size=1, max_size=2).map(lambda parts: "/" + "/".join(parts))


@st.composite
def trees(draw, depth=2):
    """Draw the routes of a router, each leaf with its whole template in a response header."""

    def routes(prefix, depth):
        found = []
        for template in draw(st.lists(templates, min_size=1, max_size=3)):
            names = [part for part in (prefix + template).split("/") if part.startswith("{")]
            if len(names) != len(set(names)):
                continue
            if depth and draw(st.booleans()):
                found.append(Mount(template, Router(routes(prefix + template, depth - 1))))
            else:
                found.append(Route(template, leaf(prefix + template)))
        return found

    def leaf(whole):
        async def tell(request):
            return PlainTextResponse(whole)

        return tell

    return Router(routes("", depth))


@settings(max_examples=60)
@given(trees(), st.lists(st.sampled_from(["a", "b", "x"]), min_size=1, max_size=6))
def test_in_any_tree_the_template_is_the_one_that_answered(asgi, tree, parts):
    """Whatever the router chose, the walk finds the same leaf; a 404 names no leaf."""
    with testing.captured() as telemetry:
        reply = asyncio.run(asgi(ServerMiddleware(tree), "GET", "/" + "/".join(parts)))
    route = telemetry.spans[0]["attributes"].get("http.route")
    if reply.status == 200:
        assert route == reply.body.decode()
    else:
        assert route is None or route.endswith("/{path}")
