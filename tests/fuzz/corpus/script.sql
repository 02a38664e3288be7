BEGIN;
SELECT n AS n FROM t \gset p_
\if :p_n
UPDATE t SET n = 1;
\else
SELECT 2;
\endif
END;
