-- One row is a gap in the numbers that a process gives its lines, or its own word that it lost some:
-- of its lines, or of what it exports over OTLP beside them.
CREATE VIEW _finding_lost_lines AS
WITH
numbered AS (
    SELECT
        instance,
        seq,
        file,
        line
    FROM _span_lines
    JOIN _owners USING (owner)
    WHERE seq IS NOT NULL
    UNION ALL
    SELECT
        instance,
        seq,
        file,
        line
    FROM _log_lines
    JOIN _owners USING (owner)
    WHERE seq IS NOT NULL
    UNION ALL
    SELECT
        instance,
        seq,
        file,
        line
    FROM _metric_lines
    JOIN _owners USING (owner)
    WHERE seq IS NOT NULL
    UNION ALL
    SELECT
        instance,
        seq,
        file,
        line
    FROM _process_lines
    JOIN _owners USING (owner)
    WHERE seq IS NOT NULL
),
neighbour AS (
    SELECT
        instance,
        seq,
        file,
        line,
        lag(seq) OVER numbers AS seq_before,
        lag(file || ':' || line) OVER numbers AS place_before
    FROM numbered
    SEMI JOIN _lost_line_counts USING (instance)
    WINDOW numbers AS (
        PARTITION BY instance
        ORDER BY seq, file, line
    )
),
last_line AS (
    SELECT
        instance,
        arg_max(file, (time_unix_nano, seq)) AS file,
        arg_max(line, (time_unix_nano, seq)) AS line,
        coalesce(max(export_dropped), 0) AS export_dropped,
        coalesce(max(export_failed), 0) AS export_failed
    FROM _process_lines
    JOIN _owners USING (owner)
    GROUP BY instance
),
gap AS (
    SELECT
        owner.run_id,
        gap.file,
        gap.line,
        _instance_label(owner.service_name, owner.service_instance_id, owner.process_pid) AS label,
        owner.service_name,
        gap.seq - coalesce(gap.seq_before, -1) - 1 AS lost,
        coalesce(gap.seq_before, -1) + 1 AS first_lost,
        gap.seq - 1 AS last_lost,
        gap.place_before
    FROM neighbour AS gap
    JOIN instances AS owner USING (instance)
    WHERE gap.seq - coalesce(gap.seq_before, -1) > 1
)
SELECT
    'lost_lines' AS code,
    CASE WHEN place_before IS NULL THEN 'warning' ELSE 'error' END AS severity,
    'lines_lost' AS cause,
    1 AS confidence,
    run_id,
    NULL::VARCHAR AS trace_id,
    NULL::VARCHAR AS span_id,
    file,
    line,
    label AS place,
    lost || CASE WHEN lost = 1 THEN ' line of ' ELSE ' lines of ' END || label || CASE
        WHEN place_before IS NULL THEN ' are missing before ' || file || ':' || line
        ELSE ' are missing between ' || place_before || ' and ' || file || ':' || line
    END AS message,
    CASE
        WHEN place_before IS NULL THEN 'the beginning of its log is not among the inputs: rotated away, or cut'
        ELSE 'lines were cut from the log, torn (see torn_lines), or not collected'
    END AS hint,
    json_object('lost', lost, 'first_seq', first_lost, 'last_seq', last_lost) AS evidence
FROM gap
UNION ALL
SELECT
    'lost_lines',
    'error',
    'records_dropped',
    1,
    owner.run_id,
    NULL,
    NULL,
    last_line.file,
    last_line.line,
    _instance_label(owner.service_name, owner.service_instance_id, owner.process_pid),
    _instance_label(owner.service_name, owner.service_instance_id, owner.process_pid)
        || ' could not write ' || owner.records_dropped || ' records',
    'its stdout was closed, full or too slow',
    json_object('records_dropped', owner.records_dropped)
FROM instances AS owner
JOIN last_line USING (instance)
WHERE owner.records_dropped > 0
UNION ALL
SELECT
    'lost_lines',
    'warning',
    'exports_dropped',
    1,
    owner.run_id,
    NULL,
    NULL,
    last_line.file,
    last_line.line,
    _instance_label(owner.service_name, owner.service_instance_id, owner.process_pid),
    _instance_label(owner.service_name, owner.service_instance_id, owner.process_pid)
        || ' could not export ' || (last_line.export_dropped + last_line.export_failed)
        || ' records over OTLP',
    'its receiver was away or too slow; `reconstruct export otlp` sends the logs again',
    json_object(
        'export_dropped', last_line.export_dropped,
        'export_failed', last_line.export_failed
    )
FROM instances AS owner
JOIN last_line USING (instance)
WHERE last_line.export_dropped + last_line.export_failed > 0;

COMMENT ON VIEW _finding_lost_lines IS 'One row is a gap in the numbers that a process gives its lines, or its own word that it lost some.';
