-- A cheaper look whether a tracked table is still the one that its function was written for.
--
-- The look read the table's columns from the catalog in every statement: a sixth of what capture adds to an UPDATE. The
-- planner does it now, once, and again whenever it must: a plan that names a table as a regclass constant is thrown away
-- when that table, or any schema, is altered by whomever; the statement that fires the trigger has locked the table before.
--
-- Only at READ COMMITTED, where what is read was read after the table was locked. A plan that was made from an older
-- snapshot would go on being believed; so at the other levels, and in partitions, the catalog is read each time.

SET LOCAL ROLE rowlock_owner;

-- IMMUTABLE for the planner's sake, which is to put the answer in place of the call. For the functions below alone.
CREATE FUNCTION rowlock.capture_is_as_written(p_table regclass, p_shown_name text, p_shapes bigint[]) RETURNS boolean
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT p_table::text = p_shown_name AND coalesce(pg_partition_root(p_table), p_table) = p_table
       AND rowlock.capture_shape(p_table) = ANY (p_shapes)
$$;
REVOKE ALL ON FUNCTION rowlock.capture_is_as_written FROM PUBLIC;

-- The function that the triggers of one table call, its statements written out. The table is named by its oid: a name
-- could come to mean another table, and in a restored database an oid that means none is a look at the catalog.
CREATE OR REPLACE FUNCTION rowlock.capture_function_sql(p_tracked rowlock.tracked_table) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $capture$
    SELECT format('CREATE OR REPLACE FUNCTION rowlock.%I() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER'
                  ' SET search_path = pg_catalog, pg_temp SET DateStyle = ISO SET IntervalStyle = postgres'
                  ' SET extra_float_digits = 1 SET bytea_output = hex AS %L', 'capture_' || p_tracked.capture_id,
                  format($body$
DECLARE
    root regclass;
    as_written boolean;
    statement text;
BEGIN
    -- Is it still the table that this was written for? If not, the statement is written anew, for this once.
    IF TG_RELID = %8$s AND current_setting('transaction_isolation') = 'read committed' THEN
        as_written := rowlock.capture_is_as_written('%8$s'::regclass, %1$L, %2$L);
    END IF;
    IF as_written IS NOT TRUE OR TG_OP = 'TRUNCATE' THEN
        root := coalesce(pg_partition_root(TG_RELID), TG_RELID);
        as_written := root::text = %1$L
            AND (SELECT bit_xor(hashtextextended(attname::text, atttypid::bigint)) FROM pg_attribute
                  WHERE attrelid = TG_RELID AND attnum > 0 AND NOT attisdropped) = ANY (%2$L::bigint[]);
    END IF;
    IF TG_OP = 'UPDATE' AND as_written THEN
        %5$s;
        IF FOUND THEN
            RETURN NULL;
        END IF;
        root := coalesce(pg_partition_root(TG_RELID), TG_RELID);
        IF rowlock.capture_key(root) IS NOT DISTINCT FROM %6$L::name[] THEN
            %7$s;
            RETURN NULL;
        END IF;
        statement := rowlock.capture_sql(root, TG_OP);
    ELSIF TG_OP = 'TRUNCATE' THEN
        IF EXISTS (SELECT FROM rowlock.tracked_table WHERE table_name = root) THEN
            PERFORM rowlock.capture_truncate(TG_RELID);
        END IF;
        RETURN NULL;
    ELSIF as_written IS NOT TRUE THEN
        statement := rowlock.capture_sql(root, TG_OP);
    ELSIF TG_OP = 'INSERT' THEN
        %3$s;
        RETURN NULL;
    ELSE
        %4$s;
        RETURN NULL;
    END IF;
    IF statement IS NOT NULL THEN
        EXECUTE statement;
    END IF;
    RETURN NULL;
END
$body$, p_tracked.shown_name, p_tracked.shapes, rowlock.capture_sql(p_tracked.table_name, 'INSERT'),
                         rowlock.capture_sql(p_tracked.table_name, 'DELETE'),
                         rowlock.capture_sql(p_tracked.table_name, 'ONE'), p_tracked.key_columns,
                         rowlock.capture_sql(p_tracked.table_name, 'UPDATE'), p_tracked.table_name::oid))
$capture$;

-- Tables that are tracked already. One whose capture has a problem keeps what it has, until it is tracked again.
DO $again$
DECLARE
    tracked rowlock.tracked_table;
BEGIN
    FOR tracked IN SELECT * FROM rowlock.tracked_table AS t WHERE rowlock.capture_problem(t.table_name) IS NULL LOOP
        EXECUTE rowlock.capture_function_sql(tracked);
    END LOOP;
END
$again$;

INSERT INTO rowlock.schema_version (version, name) VALUES (12, 'capture_guard');
RESET ROLE;
