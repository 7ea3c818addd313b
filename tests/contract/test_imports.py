"""What imports what: directions between the packages, who may import which library, no cycles."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import gymlog
import reconstruct

ROOTS = {"gymlog": Path(gymlog.__file__).parent, "reconstruct": Path(reconstruct.__path__[0])}


class Import(NamedTuple):
    """One import: who, what, and whether it happens when the importing module is loaded."""

    importer: str
    imported: str
    at_load: bool

    @property
    def library(self) -> str:
        return self.imported.partition(".")[0]

    def __str__(self) -> str:
        return f"{self.importer} imports {self.imported}"


def modules() -> dict[str, Path]:
    """Return every module of both packages by its name."""
    found = {}
    for package, root in ROOTS.items():
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join([package, *parts]).removesuffix(".__init__")] = path
    return found


MODULES = modules()


def imports_of(name: str) -> Iterator[Import]:
    """Yield the imports of a module, those for type checkers alone left out."""

    def walk(node: ast.AST, *, at_load: bool) -> Iterator[Import]:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for statement in node.orelse:
                yield from walk(statement, at_load=at_load)
            return
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(name, alias.name, at_load)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} has a relative import"
            for alias in node.names:
                # `from package import module` imports the module.
                full = f"{node.module}.{alias.name}"
                yield Import(name, full if full in MODULES else str(node.module), at_load)
        in_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, at_load=at_load and not in_function)

    yield from walk(ast.parse(MODULES[name].read_text(encoding="utf-8")), at_load=True)


IMPORTS = [one for name in MODULES for one in imports_of(name)]


def is_in(module: str, *rooms: str) -> bool:
    """Say whether a module is one of `rooms` or below one of them."""
    return any(module == room or module.startswith(f"{room}.") for room in rooms)


# Between the packages.


def test_gymlog_never_imports_reconstruct() -> None:
    """A server needs no reader."""
    assert [
        str(one)
        for one in IMPORTS
        if is_in(one.importer, "gymlog") and one.library == "reconstruct"
    ] == []


def test_reconstruct_takes_only_the_contract_from_gymlog() -> None:
    """The line and the attribute keys: both standard library only."""
    taken = [
        one for one in IMPORTS if is_in(one.importer, "reconstruct") and one.library == "gymlog"
    ]
    assert taken, "the contract is shared"
    assert [
        str(one) for one in taken if not is_in(one.imported, "gymlog.record", "gymlog.semconv")
    ] == []


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    """At load, in either package: each module can be read after those it imports."""
    needs = {
        name: {one.imported for one in IMPORTS if one.importer == name and one.at_load}
        & MODULES.keys()
        for name in MODULES
    }
    while True:
        ready = {name for name, needed in needs.items() if not needed & needs.keys()}
        if not ready:
            break
        for name in ready:
            del needs[name]
    assert needs == {}, "these import each other in a circle"


# Libraries.

ALLOWED = {
    "duckdb": [
        "reconstruct.engine", "reconstruct.store", "reconstruct.safe_sql",
        "reconstruct.json_columns",
    ],
    "structlog": ["gymlog.sink", "gymlog.logs"],
    "psutil": ["gymlog.observers"],
    # Bodies of requests, and the part of each line that is encoded once.
    "orjson": [
        "gymlog.sink", "gymlog.service", "gymlog.client", "gymlog.testing",
        "gymlog.metrics.lines", "reconstruct.intake.json_text", "reconstruct.export.otlp",
    ],
    "fastapi": ["gymlog.fleet", "reconstruct.web"],
    "starlette": ["gymlog.fleet", "reconstruct.web"],
    "uvicorn": ["gymlog.fleet", "reconstruct.web"],
    "pydantic": ["gymlog.config", "gymlog.fleet"],
    "aiohttp": [
        "gymlog.client", "gymlog.client_session", "gymlog.client_span", "gymlog.connection_pool",
        "gymlog.fleet",
    ],
    "rich": ["gymlog.fleet", "reconstruct.console", "reconstruct.render"],
    "click": ["gymlog.cli", "reconstruct.cli", "reconstruct.commands"],
    "grpc": ["gymlog.otlp", "reconstruct.export.otlp"],
    "google": ["gymlog.otlp", "reconstruct.export.otlp"],
    "requests": ["gymlog.otlp", "reconstruct.export.otlp"],
    "pyarrow": [
        "reconstruct.engine", "reconstruct.safe_sql", "reconstruct.run", "reconstruct.intake",
        "reconstruct.export", "reconstruct.store",
    ],
    "numpy": ["reconstruct.intake.ours", "reconstruct.export.otlp.checkpoint"],
}  # fmt: skip
"""Library -> the rooms that may import it; any other may be imported anywhere it is needed."""


@pytest.mark.parametrize("library", ALLOWED)
def test_a_library_is_imported_only_where_its_room_is(library: str) -> None:
    """So that what it costs, and what replaces it, is in one place."""
    importers = [one for one in IMPORTS if one.library == library]
    assert [str(one) for one in importers if not is_in(one.importer, *ALLOWED[library])] == []


def test_gymlogs_own_tracing_needs_the_api_and_not_the_sdk() -> None:
    """The SDK is for who exports: its span costs many times ours."""
    rooms = ("gymlog.otel", "gymlog.otlp", "gymlog.metrics", "gymlog.logs")
    assert [
        str(one)
        for one in IMPORTS
        if is_in(one.importer, "gymlog")
        and is_in(one.imported, "opentelemetry.sdk", "opentelemetry.exporter")
        and not is_in(one.importer, *rooms)
    ] == []


STANDARD_ONLY = [
    "gymlog.clock", "gymlog.environment", "gymlog.errors", "gymlog.ids", "gymlog.notices",
    "gymlog.record", "gymlog.redaction", "gymlog.rollout", "gymlog.semconv", "gymlog.settings",
    "gymlog.span_groups",
]  # fmt: skip


@pytest.mark.parametrize("module", STANDARD_ONLY)
def test_what_everything_rests_on_rests_on_the_standard_library(module: str) -> None:
    """And on its like."""
    assert [
        str(one)
        for one in IMPORTS
        if one.importer == module
        and one.library not in sys.stdlib_module_names
        and one.imported not in STANDARD_ONLY
    ] == []


# What is loaded, in processes of their own.

HEAVY = {
    "opentelemetry", "aiohttp", "fastapi", "starlette", "uvicorn", "duckdb", "pyarrow", "pydantic",
    "structlog", "orjson", "click", "rich", "psutil",
}  # fmt: skip

EVERY_SITE = """
import gymlog
from gymlog import *

assert not is_telemetry_env_enabled() and is_telemetry_metrics_enabled()
assert init_telemetry("server", "type", {"a": 1}) is None is get_telemetry()
assert configure_telemetry_env(None) is None
assert not is_span_group_enabled(GymSpanGroup.ROLLOUT)
assert GymSpanGroup.resolve("default")

with rollout_context("1-0"), managed_span("rollout", "a", b=1) as span, span_cm("c") as other:
    assert span is other is None
    assert current_rollout_id() == "1-0"
    assert rollout_path("/run") == "/ng-rollout/1-0/run"
    assert rollout_id_from_body({"_ng_task_index": 1, "_ng_rollout_index": 0}) == "1-0"
    safe_set_span_attributes(span, {"a": 1})

@trace_fn("rollout", "function")
def function(): return 1

@trace_fn("rollout", "generator")
def generator(): yield 1

@trace_fn("rollout", "coroutine")
async def coroutine(): return 1

@trace_fn("rollout", "async generator")
async def async_generator(): yield 1

def awaited(step):
    try:
        step.send(None)
    except StopIteration as stop:
        return stop.value

assert function() == 1 == next(iter(generator()))
assert awaited(coroutine()) == 1 == awaited(async_generator().__anext__())
shutdown_telemetry()
"""


def loaded_by(program: str) -> set[str]:
    """Return the top-level modules that a process has loaded after `program`."""
    report = (
        "import json, sys; json.dump(sorted({m.split('.')[0] for m in sys.modules}), sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\n{report}"],
        env={"PYTHONPATH": str(ROOTS["gymlog"].parent)},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_importing_gymlog_loads_nothing_heavy() -> None:
    """Telemetry that is off costs a server almost nothing at start."""
    assert loaded_by("import gymlog") & HEAVY == set()


def test_with_telemetry_off_no_call_site_loads_anything_heavy() -> None:
    """Every one of them is used; the lazy names are what a switched-off process does not touch."""
    program = EVERY_SITE.replace("from gymlog import *", f"from gymlog import {', '.join(LIGHT)}")
    assert loaded_by(program) & HEAVY == set()


LIGHT = sorted(set(gymlog.__all__) - set(gymlog._LAZY))


def test_a_lazy_name_is_loaded_when_it_is_used() -> None:
    """And the one needs not what another needs."""
    loaded = loaded_by("import gymlog; gymlog.TelemetryConfig(); assert 'request' in dir(gymlog)")
    assert "pydantic" in loaded
    assert loaded & (HEAVY - {"pydantic"}) == set()


@pytest.mark.parametrize("program", ["gymlog", "reconstruct"])
def test_help_is_quick(program: str) -> None:
    """What is heavy is imported by the command that needs it."""
    loaded = loaded_by(
        f"from {program}.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass"
    )
    assert loaded & (HEAVY - {"click", "rich"} | {"grpc"}) == set()
