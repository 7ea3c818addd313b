"""JavaScript's console output is text that is named, neither spans nor damage."""

from collections import Counter
from pathlib import Path

import pytest

from reconstruct.intake import files, reader, tables
from reconstruct.intake.formats import explain
from reconstruct.intake.formats.js_console import JS_CONSOLE

PRINTED = """\
{
  resource: {
    attributes: {
      'service.name': 'unknown_service:node',
      'process.pid': 77,
      'it\\'s': "it's"
    }
  },
  instrumentationScope: { name: 'gym', version: '1', schemaUrl: undefined },
  traceId: '11f5469520e45b890cd8407ba598cd13',
  parentSpanContext: {
    traceId: '11f5469520e45b890cd8407ba598cd13',
    spanId: 'aee02d80f5ac99d6',
    traceFlags: 1,
    traceState: undefined
  },
  traceState: undefined,
  name: 'child',
  id: '3f7d3d2cb7d22e5a',
  kind: 0,
  timestamp: 1796038231115000,
  duration: 631.358,
  attributes: { 'http.route': '/run', l: [ 'a', 'b' ], s: "it's" },
  status: { code: 2, message: 'boom' },
  events: [
    {
      name: 'e',
      attributes: { i: 1 },
      time: [ 1796038231, 115467156 ],
      droppedAttributesCount: 0
    }
  ],
  links: []
}
"""
OUR_SPAN = (
    '{"record_type":"span","seq":1,"trace_id":"0123456789abcdef0123456789abcdef",'
    '"span_id":"0123456789abcdef","parent_span_id":null,"name":"ours","kind":"INTERNAL",'
    '"start_time_unix_nano":1800000000000000000,"end_time_unix_nano":1800000000000000100,'
    '"flags":259,"status":{"code":"UNSET"},"attributes":{},'
    '"resource":{"attributes":{"service.name":"a","service.instance.id":"a-1"}}}\n'
)


@pytest.mark.parametrize("prefix", ["", "(agent) "])
def test_it_is_named_once_for_each_span(tmp_path: Path, prefix: str) -> None:
    """Every line is text, one of each span says what it is, and our own spans are read."""
    lines = (PRINTED + PRINTED).splitlines()
    text = "".join(f"{prefix}{line}\n" for line in lines) + OUR_SPAN
    (tmp_path / "node.log").write_text(text)
    rows: dict[str, list[dict[str, object]]] = {name: [] for name in tables.TABLES}
    for name, batch in reader.read(files.find([str(tmp_path)])):
        rows[name].extend(batch.to_pylist())
    assert [row["name"] for row in rows[tables.SPAN_LINES]] == ["ours"]
    classes = {row["class"]: row["lines"] for row in rows[tables.CLASS_COUNTS]}
    assert classes == {"text": len(lines), "span": 1}
    reasons = Counter(row["reason"] for row in rows[tables.REJECTED_LINES])
    assert reasons[JS_CONSOLE] == 2


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"plain text",
        b"  indented text",
        b"traceId: '11f5469520e45b890cd8407ba598cd13',",
        b"    traceId: '11f5469520e45b890cd8407ba598cd13',",
        b"{'trace_id': 'f678fc9ba407bc347b098a91846f50b4', 'span_id': 'aaec2ac819bf492f'}",
        b"  'attributes': {'a': 1}, 'trace_id': 'f678'",
        b'    "service.name": "quoted as JSON has it",',
    ],
)
def test_other_lines_are_not_explained(line: bytes) -> None:
    """Pieces of Python's dicts on one line, JSON and text stay what they were."""
    assert explain(line) is None
