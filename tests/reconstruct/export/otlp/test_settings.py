"""Options and variables mean what the specification of the OTLP exporter says."""

import math

import pytest

from reconstruct.errors import UsageError
from reconstruct.export.otlp.settings import Options, Target, header_pairs

ALL = "OTEL_EXPORTER_OTLP_"


def target(signal="traces", environ=None, **options):
    return Target.of(signal, Options(**options), environ or {})


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://h:4318", "http://h:4318/v1/logs"),
        ("http://h:4318/", "http://h:4318/v1/logs"),
        ("http://h:4318/v1/logs", "http://h:4318/v1/logs"),
        ("http://h:4318/v1/traces", "http://h:4318/v1/logs"),
        ("http://h/otlp", "http://h/otlp/v1/logs"),
        ("h:4318", "http://h:4318/v1/logs"),
        ("https://h/x/?key=1", "https://h/x/v1/logs?key=1"),
    ],
)
def test_the_option_is_a_base(endpoint, url):
    assert target("logs", endpoint=endpoint).url == url


@pytest.mark.parametrize(
    ("variable", "value", "url"),
    [
        ("ENDPOINT", "http://h/otlp/", "http://h/otlp/v1/traces"),
        ("TRACES_ENDPOINT", "http://h/custom", "http://h/custom"),
        ("TRACES_ENDPOINT", "http://h/custom/", "http://h/custom/"),
        ("LOGS_ENDPOINT", "http://h/custom", "http://localhost:4318/v1/traces"),
        ("ENDPOINT", "  ", "http://localhost:4318/v1/traces"),
    ],
)
def test_only_the_endpoint_for_all_gets_a_path(variable, value, url):
    assert target(environ={ALL + variable: value}).url == url


@pytest.mark.parametrize(
    ("endpoint", "insecure", "url", "plain"),
    [
        ("http://h:4317", None, "h:4317", True),
        ("https://h:4317", "true", "h:4317", False),
        ("h:4317", None, "h:4317", False),
        ("h:4317", "TRUE", "h:4317", True),
        ("https://h/", None, "h:443", False),
        (None, None, "localhost:4317", True),
    ],
)
def test_the_scheme_decides_about_tls_before_insecure(endpoint, insecure, url, plain):
    environ = {ALL + "INSECURE": insecure or "", ALL + "ENDPOINT": endpoint or ""}
    found = target(environ=environ, protocol="grpc")
    assert (found.url, found.is_plain) == (url, plain)


def test_a_signals_variable_comes_before_that_for_all_and_the_option_before_both():
    environ = {
        ALL + "HEADERS": "a=1",
        ALL + "METRICS_HEADERS": "b=2",
        ALL + "TIMEOUT": "2500",
        ALL + "METRICS_COMPRESSION": "gzip",
        ALL + "METRICS_PROTOCOL": "http/json",
    }
    traces, metrics = target(environ=environ), target("metrics", environ=environ)
    assert (traces.headers, traces.timeout, traces.compression) == ({"a": "1"}, 2.5, "none")
    assert (metrics.headers, metrics.compression) == ({"b": "2"}, "gzip")
    assert (traces.protocol, metrics.protocol) == ("http/protobuf", "http/json")
    assert target("metrics", environ, protocol="grpc", timeout=1.0).timeout == 1.0


def test_no_timeout_is_for_ever():
    assert target(environ={ALL + "TIMEOUT": "0"}).timeout == math.inf


def test_headers_are_percent_decoded_and_may_hold_equals_signs():
    assert header_pairs("X-Key=a%20b=c%3D, y = %2C ,", "--headers") == {"x-key": "a b=c=", "y": ","}


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TIMEOUT", "soon"),
        ("COMPRESSION", "zip"),
        ("PROTOCOL", "thrift"),
        ("HEADERS", "novalue"),
        ("ENDPOINT", "ftp://h"),
        ("ENDPOINT", "http://h:port"),
    ],
)
def test_a_variable_that_makes_no_sense_is_named(variable, value):
    with pytest.raises(UsageError, match=ALL + variable):
        target(environ={ALL + variable: value})


def test_what_is_shown_holds_no_secret():
    found = target(endpoint="http://me:secret@h", headers={"k": "secret"})
    assert "secret" not in found.words
    assert found.words == "http://h/v1/traces"
