-- The rule by which time is sorted: what kind of work a span is. The kinds are model, tool, verify,
-- sandbox, agent (what drives the rollout: driver, environment and agent servers) and unaccounted.

-- The path that a request asked for, from the span's name or its attributes; '' without one.
CREATE MACRO _path_of_request(name, attributes) AS CASE
    WHEN contains(name, '/') THEN name
    ELSE regexp_extract(
        coalesce(
            attributes->>'url.path',
            attributes->>'http.target',
            regexp_extract(
                coalesce(attributes->>'url.full', attributes->>'http.url'),
                '^[a-zA-Z]+://[^/?#]*(.*)',
                1
            ),
            ''
        ),
        '^[^?#]*'
    )
END;

COMMENT ON MACRO _path_of_request IS 'The path that a request asked for, from the span''s name or its attributes; empty without one.';

-- What a server does, by its type or, where it has none, by a word in its name; null when neither
-- says.
CREATE MACRO _work_of_server(server_type, service_name) AS CASE
    WHEN server_type = 'responses_api_models' THEN 'model'
    WHEN server_type = 'resources_servers' THEN 'tool'
    WHEN server_type IS NOT NULL THEN 'agent'
    WHEN regexp_matches(service_name, 'sandbox', 'i') THEN 'sandbox'
    WHEN regexp_matches(service_name, 'verif|judge|reward', 'i') THEN 'verify'
    WHEN regexp_matches(service_name, 'agent|environment|driver|orchestrator', 'i') THEN 'agent'
    WHEN regexp_matches(service_name, 'model|llm|inference', 'i') THEN 'model'
    WHEN regexp_matches(service_name, 'tool|resources', 'i') THEN 'tool'
END;

COMMENT ON MACRO _work_of_server IS 'What a server does, by its type or by a word in its name; null when neither says.';

-- What an operation of OpenTelemetry's GenAI conventions, or a kind of span of OpenInference, is.
CREATE MACRO _work_of_operation(attributes) AS CASE coalesce(
    attributes->>'gen_ai.operation.name',
    attributes->>'openinference.span.kind'
)
    WHEN 'chat' THEN 'model'
    WHEN 'text_completion' THEN 'model'
    WHEN 'generate_content' THEN 'model'
    WHEN 'embeddings' THEN 'model'
    WHEN 'LLM' THEN 'model'
    WHEN 'EMBEDDING' THEN 'model'
    WHEN 'execute_tool' THEN 'tool'
    WHEN 'TOOL' THEN 'tool'
    WHEN 'RETRIEVER' THEN 'tool'
    WHEN 'EVALUATOR' THEN 'verify'
    WHEN 'invoke_agent' THEN 'agent'
    WHEN 'create_agent' THEN 'agent'
    WHEN 'AGENT' THEN 'agent'
END;

COMMENT ON MACRO _work_of_operation IS 'What an operation of the GenAI conventions, or a kind of span of OpenInference, is.';

-- What a span says of itself; null when it says nothing, and is part of what its parent is.
CREATE MACRO _work_of(name, kind, server_type, service_name, attributes, is_root) AS CASE
    WHEN name LIKE 'gym.model.%' THEN 'model'
    WHEN name LIKE 'gym.verify%' THEN 'verify'
    WHEN name LIKE 'gym.sandbox.%' THEN 'sandbox'
    WHEN name IN ('gym.rollout', 'gym.job') OR name LIKE 'gym.agent.%' THEN 'agent'
    WHEN server_type = 'responses_api_models' THEN 'model'
    WHEN kind = 'SERVER' AND coalesce(server_type, 'resources_servers') = 'resources_servers'
        AND _path_of_request(name, attributes) LIKE '%/verify'
        THEN 'verify'
    WHEN server_type = 'resources_servers' THEN 'tool'
    WHEN kind IN ('SERVER', 'CONSUMER') AND server_type IS NOT NULL THEN 'agent'
    WHEN (
            contains(attributes::VARCHAR, '"gen_ai.operation.name"')
            OR contains(attributes::VARCHAR, '"openinference.span.kind"')
        )
        AND _work_of_operation(attributes) IS NOT NULL
        THEN _work_of_operation(attributes)
    WHEN kind IN ('SERVER', 'CONSUMER') THEN coalesce(
        _work_of_server(server_type, service_name),
        CASE WHEN is_root THEN 'agent' ELSE 'unaccounted' END
    )
    WHEN is_root THEN 'agent'
END;

COMMENT ON MACRO _work_of IS 'What kind of work a span says that it is; null when it says nothing, and is part of what its parent is.';

-- What a part of something is, within the nearest agent: a sandbox stays one wherever it is used;
-- else all that is done for a verification is verify; else of models and tools, one called by the
-- other, the outer one counts.
CREATE MACRO _work_within(outer_work, inner_work) AS CASE
    WHEN 'sandbox' IN (outer_work, inner_work) THEN 'sandbox'
    WHEN 'verify' IN (outer_work, inner_work) THEN 'verify'
    WHEN outer_work IN ('model', 'tool') THEN outer_work
    WHEN inner_work IN ('model', 'tool') THEN inner_work
    ELSE coalesce(outer_work, inner_work)
END;

COMMENT ON MACRO _work_within IS 'What a part of something is: sandbox, else verify, else the outer one of model and tool.';

-- What an agent calls where the other half of the call is not in the input.
CREATE MACRO _work_of_callee(name, attributes) AS CASE
    WHEN regexp_matches(
            _path_of_request(name, attributes),
            '/(responses|(chat/)?completions|messages|embeddings)$'
        )
        THEN 'model'
    WHEN _path_of_request(name, attributes) LIKE '%/verify' THEN 'verify'
    WHEN _path_of_request(name, attributes) LIKE '%/run' THEN 'agent'
    ELSE 'tool'
END;

COMMENT ON MACRO _work_of_callee IS 'What an agent calls where the other half of the call is not in the input.';
