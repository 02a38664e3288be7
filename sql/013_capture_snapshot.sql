-- A column that was added after the transaction's snapshot is not left out in silence.
--
-- Above READ COMMITTED the catalog is read as of the snapshot, while the server itself runs every statement with the
-- table's columns of today: an UPDATE of a column added meanwhile was made, and no entry told of it. Now it is refused with
-- 40001, as other changes after the snapshot are, and the transaction run again sees the column.

SET LOCAL ROLE rowlock_owner;

-- Takes no lock. How many columns the snapshot shows, and whether today's catalog, which has_column_privilege asks, has
-- one behind the last of them: it answers NULL for a column that does not exist.
CREATE FUNCTION rowlock.refuse_younger_column(p_table regclass) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF has_column_privilege(p_table, (SELECT relnatts + 1 FROM pg_class WHERE oid = p_table)::smallint, 'SELECT')
       IS NOT NULL THEN
        RAISE EXCEPTION 'a column was added to the tracked table % after the snapshot of this transaction', p_table
            USING ERRCODE = 'serialization_failure', HINT = 'Run the transaction again.';
    END IF;
END
$$;
REVOKE ALL ON FUNCTION rowlock.refuse_younger_column(regclass) FROM PUBLIC;

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
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM rowlock.refuse_younger_column(TG_RELID);
    ELSIF TG_RELID = %8$s THEN
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

INSERT INTO rowlock.schema_version (version, name) VALUES (13, 'capture_snapshot');
RESET ROLE;
