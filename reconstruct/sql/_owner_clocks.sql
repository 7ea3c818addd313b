-- One row is an owner of lines and the clock that its times were read from.
--
-- Processes of one boot of one machine share its clock, also in containers with host names of their
-- own. Who names no boot shares the clock of its host, which is that of the host's boot where all
-- others name the same one; who names no host either has a clock of its own. Clocks are numbered in
-- order of their names.
CREATE TABLE _owner_clocks AS
WITH
host_boot AS (
    SELECT
        host_name,
        min(boot_id) AS boot_id
    FROM instances
    WHERE host_name IS NOT NULL
    GROUP BY host_name
    HAVING min(boot_id) = max(boot_id)
),
-- What the lines themselves name comes first: several hosts may share an instance id.
stated AS (
    SELECT
        owner.owner,
        owner.instance,
        coalesce(owner.host_name, instance.host_name) AS host_name,
        CASE
            WHEN coalesce(owner.host_name = instance.host_name, TRUE)
                THEN coalesce(owner.boot_id, instance.boot_id)
            ELSE owner.boot_id
        END AS boot_id
    FROM _owners AS owner
    JOIN instances AS instance USING (instance)
),
reader AS (
    SELECT
        stated.owner,
        stated.instance,
        stated.host_name,
        coalesce(stated.boot_id, host_boot.boot_id) AS boot_id
    FROM stated
    LEFT JOIN host_boot USING (host_name)
),
keyed AS (
    SELECT
        owner,
        instance,
        host_name,
        boot_id,
        coalesce('boot ' || boot_id, 'host ' || host_name, 'instance ' || instance) AS key
    FROM reader
),
called AS (
    SELECT
        key,
        coalesce(min(host_name), min(boot_id), min(instance)) AS name,
        min(boot_id) AS boot_id
    FROM keyed
    GROUP BY key
),
clock AS (
    SELECT
        key,
        name || CASE
            WHEN boot_id IS NOT NULL AND count(*) OVER (PARTITION BY name) > 1
                THEN ' boot ' || boot_id
            ELSE ''
        END AS clock
    FROM called
)
SELECT
    keyed.owner,
    keyed.instance,
    keyed.host_name,
    keyed.boot_id,
    clock.clock,
    dense_rank() OVER (ORDER BY clock.clock) AS number
FROM keyed
JOIN clock USING (key);

COMMENT ON TABLE _owner_clocks IS 'One row is an owner of lines and the clock that its times were read from.';
