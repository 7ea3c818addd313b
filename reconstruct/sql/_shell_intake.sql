-- Fills the base tables from the files that the variable `logs` names (default *.log), as the plain
-- duckdb shell reads them. Only lines of ours are taken, and those that are no JSON object are left
-- out: `reconstruct lines` accounts for every one. Lines are numbered without the blank ones.
--
-- DuckDB joins in loops where it expects few rows, and is wrong about recursive queries.
SET GLOBAL asof_loop_join_threshold = 0;

CREATE TEMP TABLE _log_file_lines AS
WITH numbered AS (
    SELECT
        *,
        row_number() OVER () AS overall_line
    FROM read_ndjson(
        coalesce(getvariable('logs'), '*.log'),
        filename = 'file',
        ignore_errors = TRUE,
        columns = {
            record_type: 'VARCHAR',
            seq: 'BIGINT',
            trace_id: 'VARCHAR',
            span_id: 'VARCHAR',
            parent_span_id: 'VARCHAR',
            name: 'VARCHAR',
            kind: 'VARCHAR',
            start_time_unix_nano: 'BIGINT',
            end_time_unix_nano: 'BIGINT',
            flags: 'BIGINT',
            trace_state: 'VARCHAR',
            status: 'JSON',
            attributes: 'JSON',
            events: 'JSON',
            links: 'JSON',
            dropped_attributes_count: 'BIGINT',
            dropped_events_count: 'BIGINT',
            dropped_links_count: 'BIGINT',
            scope: 'JSON',
            resource: 'JSON',
            time_unix_nano: 'BIGINT',
            severity_number: 'BIGINT',
            severity_text: 'VARCHAR',
            body: 'JSON',
            description: 'VARCHAR',
            unit: 'VARCHAR',
            type: 'VARCHAR',
            is_monotonic: 'BOOLEAN',
            aggregation_temporality: 'VARCHAR',
            value: 'DOUBLE',
            count: 'BIGINT',
            sum: 'DOUBLE',
            min: 'DOUBLE',
            max: 'DOUBLE',
            bucket_counts: 'JSON',
            explicit_bounds: 'JSON',
            exemplars: 'JSON',
            state: 'VARCHAR',
            schema: 'BIGINT',
            spans_written: 'BIGINT',
            records_dropped: 'BIGINT',
            open_spans: 'BIGINT',
            export_dropped: 'BIGINT',
            export_failed: 'BIGINT'
        }
    )
)
SELECT
    *,
    overall_line - min(overall_line) OVER (PARTITION BY file) + 1 AS line,
    dense_rank() OVER (ORDER BY resource::VARCHAR) AS owner
FROM numbered;

INSERT INTO _owners BY NAME
WITH stated AS (
    SELECT DISTINCT
        owner,
        resource,
        resource->'attributes' AS attributes
    FROM _log_file_lines
)
SELECT
    owner,
    resource,
    concat(attributes->>'service.name', '#', attributes->>'service.instance.id') AS instance,
    attributes->>'service.name' AS service_name,
    attributes->>'service.instance.id' AS service_instance_id,
    attributes->>'nemo.gym.server.name' AS server_name,
    attributes->>'nemo.gym.server.type' AS server_type,
    attributes->>'nemo.run.id' AS run_id,
    attributes->>'host.name' AS host_name,
    (attributes->>'process.pid')::BIGINT AS process_pid,
    attributes->>'gymlog.boot.id' AS boot_id
FROM stated;

INSERT INTO _span_lines BY NAME
SELECT
    file,
    line,
    FALSE AS recovered,
    record_type,
    seq,
    trace_id,
    span_id,
    parent_span_id,
    name,
    kind,
    start_time_unix_nano,
    end_time_unix_nano,
    flags,
    trace_state,
    CASE WHEN record_type = 'span' THEN status->>'code' END AS status_code,
    status->>'message' AS status_message,
    attributes,
    events,
    links,
    dropped_attributes_count,
    dropped_events_count,
    dropped_links_count,
    scope->>'name' AS scope_name,
    scope->>'version' AS scope_version,
    attributes->>'nemo.gym.rollout.id' AS rollout_id,
    owner
FROM _log_file_lines
WHERE record_type IN ('span', 'span_start')
    AND trace_id IS NOT NULL
    AND span_id IS NOT NULL;

INSERT INTO _log_lines BY NAME
SELECT
    file,
    line,
    FALSE AS recovered,
    seq,
    time_unix_nano,
    severity_number,
    severity_text,
    body,
    attributes,
    trace_id,
    span_id,
    flags,
    dropped_attributes_count,
    scope->>'name' AS scope_name,
    scope->>'version' AS scope_version,
    attributes->>'nemo.gym.rollout.id' AS rollout_id,
    owner
FROM _log_file_lines
WHERE record_type = 'log';

INSERT INTO _metric_lines BY NAME
SELECT
    file,
    line,
    FALSE AS recovered,
    seq,
    name,
    description,
    unit,
    type,
    is_monotonic,
    aggregation_temporality,
    start_time_unix_nano,
    time_unix_nano,
    attributes,
    value,
    count,
    sum,
    min,
    max,
    bucket_counts,
    explicit_bounds,
    exemplars,
    owner
FROM _log_file_lines
WHERE record_type = 'metric';

INSERT INTO _process_lines BY NAME
SELECT
    file,
    line,
    FALSE AS recovered,
    seq,
    state,
    schema,
    time_unix_nano,
    spans_written,
    records_dropped,
    open_spans,
    export_dropped,
    export_failed,
    owner
FROM _log_file_lines
WHERE record_type = 'process';

INSERT INTO _class_counts BY NAME
SELECT
    file,
    coalesce(record_type, 'other') AS class,
    count(*) AS lines
FROM _log_file_lines
GROUP BY file, record_type;

INSERT INTO _files BY NAME
SELECT
    file,
    count(*) AS lines
FROM _log_file_lines
GROUP BY file;

DROP TABLE _log_file_lines;
