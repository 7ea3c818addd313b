"""The reference of the relations, as Markdown, made from the comments in `reconstruct/sql`."""

import tempfile
from itertools import groupby
from pathlib import Path
from typing import Final

from reconstruct.engine import Engine

__all__ = ["reference"]

_RELATIONS: Final = """
    SELECT relation.name, relation.comment
    FROM (
        SELECT table_name AS name, table_oid AS place, comment
        FROM duckdb_tables()
        UNION ALL
        SELECT view_name, view_oid, comment
        FROM duckdb_views()
        WHERE NOT internal
    ) AS relation
    WHERE NOT starts_with(relation.name, '_')
    ORDER BY
        coalesce(list_position(['spans', 'traces', 'rollouts'], relation.name), 4),
        relation.place
"""
_COLUMNS: Final = """
    SELECT table_name, column_name, data_type, comment
    FROM duckdb_columns()
    WHERE NOT internal AND NOT starts_with(table_name, '_')
    ORDER BY table_name, column_index
"""


def reference() -> str:
    """Return a table of the relations, then one of each one's columns, folded away."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "empty.log").touch()
        with Engine.read([folder]) as engine:
            relations = engine.rows(_RELATIONS)
            columns = {
                name: list(rows)
                for name, rows in groupby(engine.rows(_COLUMNS), lambda row: row["table_name"])
            }
    lines = ["| relation | one row is |", "|---|---|"]
    lines += [
        f"| `{row['name']}` | {_cell(row['comment'].removeprefix('One row is '))} |"
        for row in relations
    ]
    for relation in relations:
        name = relation["name"]
        lines += ["", f"<details><summary>Columns of <code>{name}</code></summary>", ""]
        lines += ["| column | type | |", "|---|---|---|"]
        lines += [
            f"| `{column['column_name']}` | {column['data_type']} | {_cell(column['comment'])} |"
            for column in columns[name]
        ]
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
