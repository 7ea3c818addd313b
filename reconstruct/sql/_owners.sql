-- One row is who wrote lines: a resource as they state it, numbered.
-- Filled by intake; the columns are those of reconstruct/intake/tables.py.
CREATE TABLE _owners (
    owner BIGINT,
    resource JSON,
    instance VARCHAR,
    service_name VARCHAR,
    service_instance_id VARCHAR,
    server_name VARCHAR,
    server_type VARCHAR,
    run_id VARCHAR,
    host_name VARCHAR,
    process_pid BIGINT,
    boot_id VARCHAR
);

COMMENT ON TABLE _owners IS 'One row is who wrote lines: a resource as they state it, numbered.';
