-- One row is a clock: the processes that take their times from it, and what they wrote.
CREATE VIEW clocks AS
WITH
reader AS (
    SELECT
        clock,
        min(host_name) AS host_name,
        count(DISTINCT host_name) AS host_count,
        min(boot_id) AS boot_id,
        count(DISTINCT instance) AS instance_count
    FROM _owner_clocks
    GROUP BY clock
),
written AS (
    SELECT
        owner.clock,
        count(*) AS span_count,
        count(*) FILTER (edge.parent IS NULL AND NOT edge.orphan) AS root_count
    FROM _edges AS edge
    JOIN _span_lines AS line ON line.rowid = edge.node
    JOIN _owner_clocks AS owner USING (owner)
    GROUP BY owner.clock
)
SELECT
    reader.clock,
    reader.host_name,
    reader.host_count,
    reader.boot_id,
    reader.instance_count,
    coalesce(written.span_count, 0) AS span_count,
    coalesce(written.root_count, 0) AS root_count
FROM reader
LEFT JOIN written USING (clock);

COMMENT ON VIEW clocks IS 'One row is a clock: the processes that take their times from it, and what they wrote.';
COMMENT ON COLUMN clocks.clock IS 'Name: the host, with its boot where it has several; the process where neither is known.';
COMMENT ON COLUMN clocks.host_name IS 'host.name, the least of several; null when unknown.';
COMMENT ON COLUMN clocks.host_count IS 'Distinct host names: containers of one machine share its clock.';
COMMENT ON COLUMN clocks.boot_id IS 'gymlog.boot.id; null when unknown.';
COMMENT ON COLUMN clocks.instance_count IS 'Service instances that read it.';
COMMENT ON COLUMN clocks.span_count IS 'Spans timed by it.';
COMMENT ON COLUMN clocks.root_count IS 'Of these, those without a parent: where traces begin.';
