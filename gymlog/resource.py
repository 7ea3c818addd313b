"""The resource: who this process is, for its `process` records."""

import os
import socket
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from gymlog.notices import notice
from gymlog.semconv import (
    BOOT_ID,
    HOST_ID,
    HOST_NAME,
    RUN_ID,
    SERVER_NAME,
    SERVER_TYPE,
    SERVICE_GROUP,
    SERVICE_NAME,
    TELEMETRY_SDK_LANGUAGE,
    TELEMETRY_SDK_NAME,
    TELEMETRY_SDK_VERSION,
    WORKER,
)
from gymlog.values import clean

__all__ = ["declared_resource", "gymlog_version", "resource_of"]

_MAX_CHARACTERS: Final = 1024


def resource_of(
    *,
    service_name: str,
    per_server: bool,
    server_name: str | None,
    server_type: str | None,
    run_id: str | None,
    extra: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """Return the resource attributes of this process, without what changes at a fork.

    What counts more comes later: detected facts, OTEL_RESOURCE_ATTRIBUTES, the names given here,
    `extra`. `service.name` is `{service_name}/{server_name}` when `per_server`.
    """
    resource: dict[str, object] = {
        TELEMETRY_SDK_NAME: "gymlog",
        TELEMETRY_SDK_LANGUAGE: "python",
        TELEMETRY_SDK_VERSION: gymlog_version(),
        HOST_NAME: socket.gethostname(),
        HOST_ID: _first_line("/etc/machine-id"),
        BOOT_ID: _first_line("/proc/sys/kernel/random/boot_id"),
    }
    resource |= declared_resource(os.environ)
    full_name = f"{service_name}/{server_name}" if per_server and server_name else service_name
    resource[SERVICE_NAME] = full_name
    named = {
        SERVICE_GROUP: service_name,
        SERVER_NAME: server_name,
        SERVER_TYPE: server_type,
        WORKER: _is_worker() or None,
        RUN_ID: run_id,
    }
    resource |= {key: value for key, value in named.items() if value is not None}
    resource |= extra or {}
    present = {key: value for key, value in resource.items() if value is not None}
    # As a nested value: what an environment variable holds need not be UTF-8.
    cleaned: dict[str, object] = clean(present, _MAX_CHARACTERS)
    return cleaned


@cache
def gymlog_version() -> str:
    """Return the installed version of gymlog."""
    try:
        return version("gymlog")
    except PackageNotFoundError:
        return "unknown"


def declared_resource(environ: Mapping[str, str]) -> dict[str, object]:
    """Return OTEL_RESOURCE_ATTRIBUTES: `key=value` with commas, percent-encoded."""
    attributes: dict[str, object] = {}
    text = environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            notice(
                "OTEL_RESOURCE_ATTRIBUTES",
                f"OTEL_RESOURCE_ATTRIBUTES has {part!r}, which is not key=value; ignored",
            )
            continue
        attributes[unquote(key.strip())] = unquote(value.strip())
    return attributes


def _first_line(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _is_worker() -> bool:
    """Say whether a parent process of Python's started this one to share its work."""
    import multiprocessing

    return multiprocessing.parent_process() is not None
