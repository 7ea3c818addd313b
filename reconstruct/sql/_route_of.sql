-- What was asked for: the route of a request that was served, the path of one that was sent, less
-- the rollout that may stand before it; null where neither is known.
CREATE MACRO _route_of(kind, attributes) AS coalesce(
    attributes->>'http.route',
    CASE
        WHEN kind = 'CLIENT' THEN nullif(
            regexp_replace(
                coalesce(attributes->>'url.full', attributes->>'http.url'),
                '^[a-zA-Z]+://[^/?#]*(/ng-rollout/[^/?#]+(/training-token-capture)?)?',
                ''
            ),
            ''
        )
    END
);

COMMENT ON MACRO _route_of IS 'What was asked for: the route of a request that was served, the path of one that was sent, less the rollout that may stand before it.';
