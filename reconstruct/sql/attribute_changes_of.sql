-- One row is a value of an attribute, or an attribute of numbers, in two cohorts of rollouts, or of
-- traces: how many of the rollouts have it in A and in B. `cohorts` names the relation that says what
-- is compared (see _cohort_spans); of more than `most` rollouts in a cohort so many are looked at,
-- chosen by a hash, so that the answer is an estimate then.
--
-- Attributes of spans are told apart by service and name of the span, those of a process by its
-- service. A rollout has a value when one of its spans has, whose service and name it is; of a number
-- it has the mean. An attribute with a value for nearly every rollout is an id: it is named, and
-- compared no further. Keys that name a process, a run or an address are compared only where the
-- cohorts share some of their values, for those of two runs always differ.
--
-- What is real is told by a test of two shares, of numbers by Kolmogorov's and Smirnov's, both so
-- much stricter (Bonferroni) as there are rows; fewer than 5 rollouts tell nothing about chance.
CREATE MACRO attribute_changes_of(cohorts, most := 2000) AS TABLE (
    WITH
    cohort_span AS MATERIALIZED (
        SELECT
            node,
            unit,
            is_b
        FROM _cohort_spans(cohorts)
    ),
    chosen_unit AS (
        SELECT
            unit,
            is_b
        FROM (
            SELECT DISTINCT
                unit,
                is_b
            FROM cohort_span
        ) AS all_units
        QUALIFY row_number() OVER (PARTITION BY is_b ORDER BY hash(unit), unit) <= most
    ),
    member AS MATERIALIZED (
        SELECT
            cohort_span.unit,
            cohort_span.is_b,
            span.service_name,
            span.name,
            span.status_code,
            span.attributes,
            span.instance,
            span.resource
        FROM cohort_span
        JOIN chosen_unit USING (unit, is_b)
        JOIN spans AS span ON span.rowid = cohort_span.node
    ),
    process AS (
        SELECT
            instance,
            any_value(service_name) AS service_name,
            any_value(resource) AS resource
        FROM member
        GROUP BY instance
    ),
    process_fact AS MATERIALIZED (
        SELECT
            process.instance,
            process.service_name,
            fact.key,
            fact.value
        FROM process,
            LATERAL json_each(json_extract(process.resource, '$.attributes')) AS fact
        WHERE fact.key <> 'service.name'
    ),
    fact AS (
        SELECT
            'span' AS scope,
            member.unit,
            member.is_b,
            member.service_name,
            member.name,
            fact.key,
            fact.value
        FROM member, LATERAL json_each(member.attributes) AS fact
        UNION ALL
        SELECT
            'span',
            unit,
            is_b,
            service_name,
            name,
            'status',
            to_json(status_code)
        FROM member
        WHERE status_code IS NOT NULL
        UNION ALL
        SELECT
            'process',
            part.unit,
            part.is_b,
            fact.service_name,
            NULL,
            fact.key,
            fact.value
        FROM (
            SELECT DISTINCT
                unit,
                is_b,
                instance
            FROM member
        ) AS part
        JOIN process_fact AS fact USING (instance)
    ),
    -- Once for each value that a rollout has at a place.
    unit_fact AS MATERIALIZED (
        SELECT
            scope,
            service_name,
            name,
            key,
            json_extract_string(value, '$') AS value,
            unit,
            is_b,
            bool_and(json_type(value) IN ('BIGINT', 'UBIGINT', 'HUGEINT', 'DOUBLE')) AS is_number,
            avg(try_cast(json_extract_string(value, '$') AS DOUBLE)) AS number,
            count(*) AS times
        FROM fact
        GROUP BY ALL
    ),
    place AS MATERIALIZED (
        SELECT
            'span' AS scope,
            service_name,
            name,
            count(DISTINCT unit) FILTER (NOT is_b) AS units_a,
            count(DISTINCT unit) FILTER (is_b) AS units_b
        FROM member
        GROUP BY service_name, name
        UNION ALL
        SELECT
            'process',
            service_name,
            NULL,
            count(DISTINCT unit) FILTER (NOT is_b),
            count(DISTINCT unit) FILTER (is_b)
        FROM member
        GROUP BY service_name
    ),
    attribute AS MATERIALIZED (
        SELECT
            scope,
            service_name,
            name,
            key,
            count(DISTINCT unit) AS units,
            count(DISTINCT value) AS value_count,
            bool_and(is_number) AS is_number,
            count(DISTINCT value) FILTER (NOT is_b) + count(DISTINCT value) FILTER (is_b)
                > count(DISTINCT value) AS is_shared
        FROM unit_fact
        GROUP BY scope, service_name, name, key
    ),
    kind_of AS MATERIALIZED (
        SELECT
            attribute.scope,
            attribute.service_name,
            attribute.name,
            attribute.key,
            place.units_a,
            place.units_b,
            attribute.value_count,
            CASE
                WHEN attribute.key IN (
                    'service.instance.id',
                    'process.pid',
                    'process.parent_pid',
                    'gymlog.boot.id',
                    'nemo.run.id',
                    'url.full',
                    'server.port',
                    'client.port'
                ) AND NOT attribute.is_shared THEN 'id'
                WHEN attribute.value_count <= 200
                    AND (attribute.value_count = 1 OR 2 * attribute.value_count <= attribute.units)
                    AND NOT (attribute.is_number AND attribute.value_count > 20) THEN 'value'
                WHEN attribute.is_number THEN 'number'
                ELSE 'id'
            END AS kind
        FROM attribute
        JOIN place
            ON place.scope = attribute.scope
            AND place.service_name IS NOT DISTINCT FROM attribute.service_name
            AND place.name IS NOT DISTINCT FROM attribute.name
        WHERE place.units_a > 0 AND place.units_b > 0
    ),
    shared AS (
        SELECT
            kind_of.*,
            fact.value,
            count(*) FILTER (NOT fact.is_b) AS with_a,
            count(*) FILTER (fact.is_b) AS with_b
        FROM kind_of
        JOIN unit_fact AS fact
            ON fact.scope = kind_of.scope
            AND fact.service_name IS NOT DISTINCT FROM kind_of.service_name
            AND fact.name IS NOT DISTINCT FROM kind_of.name
            AND fact.key = kind_of.key
        WHERE kind_of.kind = 'value'
        GROUP BY ALL
    ),
    unit_number AS (
        SELECT
            kind_of.*,
            fact.unit,
            fact.is_b,
            sum(fact.number * fact.times) / sum(fact.times) AS number
        FROM kind_of
        JOIN unit_fact AS fact
            ON fact.scope = kind_of.scope
            AND fact.service_name IS NOT DISTINCT FROM kind_of.service_name
            AND fact.name IS NOT DISTINCT FROM kind_of.name
            AND fact.key = kind_of.key
        WHERE kind_of.kind = 'number'
        GROUP BY ALL
    ),
    below AS (
        SELECT
            *,
            count(*) FILTER (NOT is_b) OVER up_to AS below_a,
            count(*) FILTER (is_b) OVER up_to AS below_b,
            count(*) FILTER (NOT is_b) OVER whole AS with_a,
            count(*) FILTER (is_b) OVER whole AS with_b
        FROM unit_number
        WINDOW
            whole AS (PARTITION BY scope, service_name, name, key),
            up_to AS (PARTITION BY scope, service_name, name, key ORDER BY number)
    ),
    measured AS (
        SELECT
            scope,
            service_name,
            name,
            key,
            kind,
            value,
            value_count,
            units_a,
            units_b,
            with_a / units_a AS share_a,
            with_b / units_b AS share_b,
            NULL::DOUBLE AS p50_a,
            NULL::DOUBLE AS p50_b,
            abs(with_b / units_b - with_a / units_a) AS distance,
            (with_a + with_b) / (units_a + units_b) AS share
        FROM shared
        UNION ALL
        SELECT
            scope,
            service_name,
            name,
            key,
            kind,
            NULL,
            value_count,
            with_a,
            with_b,
            with_a / units_a,
            with_b / units_b,
            quantile_cont(number, 0.5) FILTER (NOT is_b),
            quantile_cont(number, 0.5) FILTER (is_b),
            max(abs(below_b / nullif(with_b, 0) - below_a / nullif(with_a, 0))),
            NULL
        FROM below
        GROUP BY scope, service_name, name, key, kind, value_count, units_a, units_b, with_a, with_b
    ),
    judged AS (
        SELECT
            *,
            0.025 / greatest(count(*) FILTER (share IS NULL OR share < 1) OVER (), 1) AS tail
        FROM measured
    )
    SELECT
        kind,
        scope,
        service_name,
        name,
        key,
        value,
        value_count,
        units_a AS rollouts_a,
        units_b AS rollouts_b,
        share_a,
        share_b,
        p50_a,
        p50_b,
        distance,
        CASE
            WHEN least(units_a, units_b) < 5 THEN NULL
            WHEN kind = 'number'
                THEN distance > sqrt(-ln(tail) / 2 * (units_a + units_b) / (units_a * units_b))
            ELSE distance - (1 / units_a + 1 / units_b) / 2
                > _normal_quantile(tail) * sqrt(share * (1 - share) * (1 / units_a + 1 / units_b))
        END AS is_real
    FROM judged
    UNION ALL
    SELECT
        kind,
        scope,
        service_name,
        name,
        key,
        NULL,
        value_count,
        units_a,
        units_b,
        NULL,
        NULL,
        NULL,
        NULL,
        NULL,
        NULL
    FROM kind_of
    WHERE kind = 'id'
);

COMMENT ON MACRO TABLE attribute_changes_of IS 'One row is a value of an attribute, or an attribute of numbers, in two cohorts of rollouts, or of traces: how many of the rollouts have it in A and in B; `cohorts` as for path_changes_of, of which at most `most` rollouts of each are looked at.';
