-- Nanoseconds as a finding prints them: seconds with three digits.
CREATE MACRO _seconds(ns) AS format('{:.3f} s', ns / 1e9);

COMMENT ON MACRO _seconds IS 'Nanoseconds as a finding prints them: seconds with three digits.';
