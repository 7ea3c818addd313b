-- One row is a span that stands without its parent, and the span that is its parent most likely.
--
-- Nothing is joined by it: spans keep the parents that their writers gave them.
--
-- Pairs are taken from the best on: of equal scores the one that began last before its child. A call
-- is proposed once, and once more for each time that it was sent again; other spans any number of
-- times. In each round those pairs are settled that are the best for both sides. Of a span the 32
-- best candidates are looked at.
CREATE VIEW join_proposals AS
WITH RECURSIVE
best AS (
    SELECT
        node,
        other,
        ids,
        other_ids,
        kind,
        room,
        after_ns,
        score,
        grounds
    FROM _join_candidates
    QUALIFY row_number() OVER (PARTITION BY node, other ORDER BY score DESC, kind) = 1
),
candidate AS MATERIALIZED (
    SELECT
        node,
        other,
        ids,
        other_ids,
        kind,
        room,
        after_ns,
        score,
        grounds,
        count(*) OVER (PARTITION BY node, score) AS alike
    FROM best
    QUALIFY row_number() OVER (
        PARTITION BY node
        ORDER BY score DESC, after_ns, other_ids, other
    ) <= 32
),
round AS (
    SELECT
        node,
        other,
        ids,
        other_ids,
        room,
        after_ns,
        score,
        FALSE AS is_settled
    FROM candidate
    UNION ALL
    SELECT
        node,
        other,
        ids,
        other_ids,
        room - taken,
        after_ns,
        score,
        is_best
    FROM (
        SELECT
            *,
            bool_or(is_best) OVER (PARTITION BY node) AS is_done,
            count(*) FILTER (is_best) OVER (PARTITION BY other) AS taken
        FROM (
            SELECT
                *,
                row_number() OVER childs = 1 AND row_number() OVER parents <= room AS is_best
            FROM round
            WHERE NOT is_settled
            WINDOW
                childs AS (
                    PARTITION BY node
                    ORDER BY score DESC, after_ns, other_ids, other
                ),
                parents AS (
                    PARTITION BY other
                    ORDER BY score DESC, after_ns, ids, node
                )
        )
    )
    WHERE is_best OR (NOT is_done AND taken < room)
)
SELECT
    child.trace_id,
    child.span_id,
    child.name,
    child.service_name,
    candidate.kind,
    parent.trace_id AS parent_trace_id,
    parent.span_id AS parent_span_id,
    parent.name AS parent_name,
    parent.service_name AS parent_service_name,
    round(candidate.score / candidate.alike, 2) AS score,
    to_json(candidate.grounds) AS grounds,
    candidate.alike - 1 AS rivals,
    candidate.node AS rowid,
    candidate.other AS parent_rowid
FROM round
JOIN candidate USING (node, other)
JOIN spans AS child ON child.rowid = candidate.node
JOIN spans AS parent ON parent.rowid = candidate.other
WHERE round.is_settled;

COMMENT ON VIEW join_proposals IS 'One row is a span that stands without its parent, and the span that is its parent most likely; nothing is joined by it.';
COMMENT ON COLUMN join_proposals.trace_id IS 'Trace of the span without its parent.';
COMMENT ON COLUMN join_proposals.span_id IS 'The span without its parent: a root, or one whose parent is in no line.';
COMMENT ON COLUMN join_proposals.name IS 'Its name.';
COMMENT ON COLUMN join_proposals.service_name IS 'Its service.';
COMMENT ON COLUMN join_proposals.kind IS 'call: a request and its caller; unserved: a caller, and the first span in a service that writes none of requests; process: two spans of one process; header: what its traceparent header names; id: what its parent id names when it is written otherwise.';
COMMENT ON COLUMN join_proposals.parent_trace_id IS 'Trace of the proposed parent.';
COMMENT ON COLUMN join_proposals.parent_span_id IS 'The proposed parent.';
COMMENT ON COLUMN join_proposals.parent_name IS 'Its name.';
COMMENT ON COLUMN join_proposals.parent_service_name IS 'Its service.';
COMMENT ON COLUMN join_proposals.score IS 'How sure it is, up to 1 (its own header says so): each ground leaves some doubt, the score is 1 less their product, divided by the number of parents that are as likely. An estimate.';
COMMENT ON COLUMN join_proposals.grounds IS 'JSON list: what speaks for it.';
COMMENT ON COLUMN join_proposals.rivals IS 'Other spans that are as likely.';
COMMENT ON COLUMN join_proposals.rowid IS 'The span without its parent: spans.rowid.';
COMMENT ON COLUMN join_proposals.parent_rowid IS 'The proposed parent: spans.rowid.';
