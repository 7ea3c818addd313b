-- The unit that both times of a span are whole numbers of, ns: 1 s, 1 ms, 1 µs or 1 ns.
CREATE MACRO _rounded_to(start_time, end_time) AS
    CASE
        WHEN start_time % 1000 <> 0 OR end_time % 1000 <> 0 THEN 1
        WHEN start_time % 1000000 <> 0 OR end_time % 1000000 <> 0 THEN 1000
        WHEN start_time % 1000000000 <> 0 OR end_time % 1000000000 <> 0 THEN 1000000
        ELSE 1000000000
    END;

COMMENT ON MACRO _rounded_to IS 'The unit that both times of a span are whole numbers of, ns: 1 s, 1 ms, 1 µs or 1 ns.';
