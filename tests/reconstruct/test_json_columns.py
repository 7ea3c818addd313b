"""Columns as JSON has them, wherever JSON stands in a type."""

from decimal import Decimal

import duckdb
import pytest

from reconstruct.json_columns import reader_of
from reconstruct.safe_sql import answer


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("""'{"a":[1,2.5,null]}'::JSON""", {"a": [1, 2.5, None]}),
        ("NULL::JSON", None),
        ("'null'::JSON", None),
        ("'9223372036854775807'::JSON", 2**63 - 1),
        ("""'{"z":123456789012345678901234567890}'::JSON""", {"z": 123456789012345678901234567890}),
        ("['[1]'::JSON, NULL]", [[1], None]),
        ("[['1'::JSON]]", [[1]]),
        ("{'a': '{}'::JSON, 'b': '{}'}", {"a": {}, "b": "{}"}),
        ("{'x': [{'y': '2'::JSON}]}", {"x": [{"y": 2}]}),
        ("MAP {'k': '[3]'::JSON}", {"k": [3]}),
        ("1.5", 1.5),
        ("[1.5]", [1.5]),
        ("0.1::DECIMAL(38,20)", 0.1),
        ("12345678901234567890.123::DECIMAL(38,3)", Decimal("12345678901234567890.123")),
        ("'[1]'", "[1]"),
        ("'x'::ENUM('x')", "x"),
        ("1::VARIANT", 1),
        ("NULL", None),
    ],
)
def test_a_value_reads_so(sql, value):
    """Beside a column that needs no reading."""
    with duckdb.connect() as connection, answer(connection.cursor, f"SELECT {sql}, 7") as it:
        (row,) = map(reader_of(it.types), it.rows())
    assert row == (value, 7)


def test_a_map_with_lists_for_keys_is_left_alone():
    """DuckDB hands it over as two lists."""
    with (
        duckdb.connect() as connection,
        answer(connection.cursor, "SELECT MAP {['a']: '1'::JSON}") as it,
    ):
        assert len(list(map(reader_of(it.types), it.rows()))) == 1
