-- One row is a clock, its number and its name.
CREATE VIEW _clock_names AS
SELECT DISTINCT
    number,
    clock
FROM _owner_clocks;

COMMENT ON VIEW _clock_names IS 'One row is a clock, its number and its name.';
