-- A word of a span's name, if it is a method of HTTP.
CREATE MACRO _method_in(name, nth) AS nullif(
    regexp_extract(
        split_part(name, ' ', nth),
        '^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE|CONNECT|QUERY)$'
    ),
    ''
);

COMMENT ON MACRO _method_in IS 'A word of a span''s name, if it is a method of HTTP.';

-- The method that a SERVER span was asked with.
CREATE MACRO _asked_method(name, attributes) AS coalesce(
    attributes->>'http.request.method',
    attributes->>'http.method',
    _method_in(name, 1)
);

COMMENT ON MACRO _asked_method IS 'The method that a SERVER span was asked with.';

-- The path that a SERVER span was asked for.
CREATE MACRO _asked_path(name, attributes) AS coalesce(
    attributes->>'url.path',
    attributes->>'http.target',
    attributes->>'http.route',
    split_part(name, ' ', 2)
);

COMMENT ON MACRO _asked_path IS 'The path that a SERVER span was asked for.';

-- The port that a SERVER span was asked at.
CREATE MACRO _asked_port(attributes) AS coalesce(
    attributes->>'server.port',
    attributes->>'net.host.port'
);

COMMENT ON MACRO _asked_port IS 'The port that a SERVER span was asked at.';

-- The method that a CLIENT span called with.
CREATE MACRO _called_method(name, attributes) AS coalesce(
    attributes->>'http.request.method',
    attributes->>'http.method',
    _method_in(name, 2)
);

COMMENT ON MACRO _called_method IS 'The method that a CLIENT span called with.';

-- The URL that a CLIENT span called.
CREATE MACRO _called_url(attributes) AS coalesce(
    attributes->>'url.full',
    attributes->>'http.url'
);

COMMENT ON MACRO _called_url IS 'The URL that a CLIENT span called.';

-- Whether a path says nothing of a request: there is none, it is the root, or a template.
CREATE MACRO _is_any_path(path) AS coalesce(path, '') IN ('', '/') OR contains(path, '{');

COMMENT ON MACRO _is_any_path IS 'Whether a path says nothing of a request: there is none, it is the root, or a template.';
