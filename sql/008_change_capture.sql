-- Change capture: rowlock.track puts triggers on a table of the user's, and every row that a statement really changes
-- leaves an entry in audit_staged, in the transaction that changed it. `rowlock seal` numbers and signs it later.
--
--     SELECT rowlock.track('public.invoice', 'tenant_id', p_exclude => '{updated_at}', p_mask => '{iban}');
--     SELECT rowlock.untrack('public.invoice');
--
-- Each tracked table has one function of its own, rowlock.capture_N, with its statements written out: they are planned
-- once for each session. It asks first, in one small query, whether the table still has the columns that it was written
-- for. If not, it has rowlock.capture_sql write the statement anew, for this once: slower, and nothing is missed.
--
-- What runs as rowlock_owner calls no code of a type's owner: values go through to_json where the type is PostgreSQL's
-- own, else through the type's output function (concat), never through a cast.

SET LOCAL ROLE rowlock_owner;

CREATE TABLE rowlock.tracked_table (
    table_name       regclass    NOT NULL CONSTRAINT tracked_table_pkey PRIMARY KEY,
    capture_id       int         NOT NULL GENERATED ALWAYS AS IDENTITY CONSTRAINT tracked_table_capture UNIQUE,
    tenant_column    name        NOT NULL,
    excluded         name[]      NOT NULL,
    masked           name[]      NOT NULL,
    actor_setting    text        NOT NULL,
    -- As it was when track was called. A column that was renamed since is found by its number.
    shown_name       text        NOT NULL,
    key_columns      name[]      NOT NULL,
    tenant_number    int2        NOT NULL,
    excluded_numbers int2[]      NOT NULL,
    masked_numbers   int2[]      NOT NULL,
    shapes           bigint[]    NOT NULL,
    tracked_at       timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE rowlock.tracked_table IS 'Tables whose changes are captured, and how; written by rowlock.track alone';
GRANT SELECT ON rowlock.tracked_table TO rowlock_app, rowlock_auditor, rowlock_sealer, rowlock_backup;
-- pg_dump reads the last value of every sequence.
GRANT SELECT ON SEQUENCE rowlock.tracked_table_capture_id_seq TO rowlock_backup;

-- The table itself and, of a partitioned one, everything under it.
CREATE FUNCTION rowlock.capture_tree(p_table regclass) RETURNS SETOF regclass
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT p_table UNION SELECT relid FROM pg_partition_tree(p_table) $$;

-- One number for the names and types of all columns. Types count by their oid, so a restored dump can look changed.
CREATE FUNCTION rowlock.capture_shape(p_table regclass) RETURNS bigint
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT bit_xor(hashtextextended(attname::text, atttypid::bigint))
      FROM pg_attribute WHERE attrelid = p_table AND attnum > 0 AND NOT attisdropped
$$;

-- The primary key's columns in its order; NULL without one, or where it is checked late: two rows may then have one key.
CREATE FUNCTION rowlock.capture_key(p_table regclass) RETURNS name[]
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT array_agg(a.attname ORDER BY k.place)
      FROM pg_index AS i CROSS JOIN unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, place)
      JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.number
     WHERE i.indrelid = p_table AND i.indisprimary AND i.indimmediate AND k.place <= i.indnkeyatts
$$;

-- Today's names of columns that once were named and numbered so: a name that is gone is looked up by its number.
CREATE FUNCTION rowlock.capture_names(p_table regclass, p_names name[], p_numbers int2[]) RETURNS name[]
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(array_agg(a.attname), '{}')
      FROM unnest(p_names, p_numbers) AS c (name, number)
      JOIN pg_attribute AS a ON a.attrelid = p_table AND a.attnum > 0 AND NOT a.attisdropped
       AND (a.attname = c.name
            OR a.attnum = c.number AND NOT EXISTS (SELECT FROM pg_attribute AS b WHERE b.attrelid = p_table
                                                      AND b.attname = c.name AND b.attnum > 0))
$$;

CREATE FUNCTION rowlock.capture_numbers(p_table regclass, p_names name[]) RETURNS int2[]
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(array_agg(a.attnum ORDER BY c.place), '{}')
      FROM unnest(p_names) WITH ORDINALITY AS c (name, place)
      JOIN pg_attribute AS a ON a.attrelid = p_table AND a.attname = c.name
$$;

-- Could row-level security hide rows from rowlock_owner, which counts them before a TRUNCATE? Not under the policy that
-- track makes; unless there is a restrictive one, too.
CREATE FUNCTION rowlock.capture_is_blind(p_table regclass) RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT EXISTS (SELECT FROM pg_class WHERE oid = p_table AND relkind = 'r' AND relrowsecurity)
       AND (NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = p_table AND polname = 'rowlock_capture')
            OR EXISTS (SELECT FROM pg_policy WHERE polrelid = p_table AND NOT polpermissive AND polcmd IN ('r', '*')
                                               AND polroles && ARRAY[0, 'rowlock_owner'::regrole]::oid[]))
$$;

CREATE FUNCTION rowlock.refuse_change_without_tenant(p_table text) RETURNS text
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'a changed row of % has no tenant, so its entry would belong to nobody', p_table
        USING ERRCODE = 'RL007', HINT = 'Give the row a tenant, or take the table out: rowlock untrack';
END
$$;

-- How each column is compared and written, as SQL; o is the old row and n the new one.
-- is_changed: = where it tells apart all that is written differently; else the binary image, which also knows 1.0 from
-- 1.00, 0 from -0, 'a' from 'A' in citext, and has an answer for json, xml and point.
-- o_value, n_value: JSON. Numbers and booleans are JSON's own, all else is a string as PostgreSQL writes it: a json
-- column too, since a JSON null in it is not NULL, and its \u0000 would have the entry refused.
CREATE FUNCTION rowlock.capture_columns(p_table regclass, p_masked name[])
    RETURNS TABLE (name name, is_exact boolean, is_changed text, is_same text, o_value text, n_value text, o_text text, n_text text,
                   o_sort text, n_sort text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT a.attname, k.kind IN ('exact', 'text'), format(p.is_changed, a.attname),
           format(p.sort || ' = ' || replace(p.sort, 'o.', 'n.'), a.attname),
           format(p.value, quote_literal(to_json(a.attname::text)::text || ':'), 'o.' || quote_ident(a.attname)),
           format(p.value, quote_literal(to_json(a.attname::text)::text || ':'), 'n.' || quote_ident(a.attname)),
           format(p.as_text, a.attname), format(replace(p.as_text, 'o.', 'n.'), a.attname),
           format(p.sort, a.attname), format(replace(p.sort, 'o.', 'n.'), a.attname)
      FROM pg_attribute AS a
     CROSS JOIN LATERAL (SELECT CASE
               WHEN a.atttypid = ANY ('{bool,int2,int4,int8,uuid,date,timestamp,timestamptz}'::regtype[]) THEN 'exact'
               WHEN a.atttypid = ANY ('{text,varchar}'::regtype[]) THEN 'text'
               WHEN a.atttypid = ANY ('{numeric,float4,float8}'::regtype[]) THEN 'number'
               ELSE 'other' END) AS k (kind)
     CROSS JOIN LATERAL (SELECT
           CASE kind WHEN 'exact' THEN 'o.%1$I IS DISTINCT FROM n.%1$I'
                     WHEN 'text' THEN 'o.%1$I COLLATE "C" IS DISTINCT FROM n.%1$I COLLATE "C"'
                     ELSE 'record_image_ne(ROW(o.%1$I), ROW(n.%1$I))' END,
           CASE WHEN a.attname = ANY (p_masked) THEN '%1$s || ''"masked"'''
                WHEN kind = 'other' THEN '%1$s || CASE WHEN num_nulls(%2$s) = 1 THEN ''null'''
                                         ' ELSE to_json(concat(%2$s))::text END'
                ELSE '%1$s || coalesce(to_json(%2$s)::text, ''null'')' END,
           CASE WHEN kind = 'text' THEN 'o.%1$I'
                WHEN kind = 'exact' OR a.atttypid = 'bpchar'::regtype THEN 'o.%1$I::text'
                ELSE 'concat(o.%1$I)' END,
           CASE kind WHEN 'other' THEN 'concat(o.%1$I)' WHEN 'text' THEN 'o.%1$I COLLATE "C"'
                     ELSE 'o.%1$I' END) AS p (is_changed, value, as_text, sort)
     WHERE a.attrelid = p_table AND a.attnum > 0 AND NOT a.attisdropped
     ORDER BY a.attnum
$$;

-- What the statements below are put together from: for each name a piece of SQL. NULL: the table is not tracked.
CREATE FUNCTION rowlock.capture_parts(p_table regclass) RETURNS jsonb
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    tracked rowlock.tracked_table;
    key name[] := rowlock.capture_key(p_table);
    tenant name;
    excluded name[];
    masked name[];
    tenant_of text := 'coalesce(NULLIF(%s, ''''), rowlock.refuse_change_without_tenant(%L))';
    object_of text := 'concat(%L, concat_ws('','', %s), '')'')';
    list_of text := 'array_to_string(ARRAY[%s]::text[], '','')';
    parts jsonb;
BEGIN
    SELECT * INTO tracked FROM rowlock.tracked_table WHERE table_name = p_table;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    tenant := (rowlock.capture_names(p_table, ARRAY[tracked.tenant_column], ARRAY[tracked.tenant_number]))[1];
    excluded := rowlock.capture_names(p_table, tracked.excluded, tracked.excluded_numbers);
    masked := rowlock.capture_names(p_table, tracked.masked, tracked.masked_numbers);
    IF key IS NULL OR tenant IS NULL THEN
        RAISE EXCEPTION 'the tracked table % has lost its %', p_table,
                        CASE WHEN key IS NULL THEN 'primary key' ELSE 'tenant column ' || tracked.tenant_column END
            USING ERRCODE = 'RL007', HINT = 'Run rowlock track for it again, or rowlock untrack.';
    END IF;
    SELECT jsonb_build_object(
               'actor', format('coalesce(NULLIF(current_setting(%L, true), ''''), session_user)', tracked.actor_setting),
               'o_tenant', format(tenant_of, max(o_text) FILTER (WHERE is_tenant), p_table),
               'n_tenant', format(tenant_of, max(n_text) FILTER (WHERE is_tenant), p_table),
               'same_tenant', max(is_same) FILTER (WHERE is_tenant),
               'first_key', max(quote_ident(name)) FILTER (WHERE key_place = 1),
               'same_key', string_agg(is_same, ' AND ' ORDER BY key_place) FILTER (WHERE is_key),
               'o_sort', string_agg(o_sort, ', ' ORDER BY key_place) FILTER (WHERE is_key),
               'n_sort', string_agg(n_sort, ', ' ORDER BY key_place) FILTER (WHERE is_key),
               'o_object', format(object_of, p_table || '(', string_agg(o_text, ', ' ORDER BY key_place) FILTER (WHERE is_key)),
               'n_object', format(object_of, p_table || '(', string_agg(n_text, ', ' ORDER BY key_place) FILTER (WHERE is_key)),
               'o_key', format(list_of, string_agg(o_value, ', ' ORDER BY key_place) FILTER (WHERE is_key)),
               'n_key', format(list_of, string_agg(n_value, ', ' ORDER BY key_place) FILTER (WHERE is_key)),
               'o_all', format(list_of, string_agg(o_value, ', ' ORDER BY place)),
               'n_all', format(list_of, string_agg(n_value, ', ' ORDER BY place)),
               'flags', coalesce(string_agg(is_changed || ' AS c' || place, ', ' ORDER BY place) FILTER (WHERE may_change), ''),
               'any_flag', coalesce(string_agg('c.c' || place, ' OR ' ORDER BY place) FILTER (WHERE may_change), 'false'),
               'o_changed', format(list_of, string_agg(format('CASE WHEN c.c%s THEN %s END', place, o_value), ', '
                                                       ORDER BY place) FILTER (WHERE may_change)),
               'n_changed', format(list_of, string_agg(format('CASE WHEN c.c%s THEN %s END', place, n_value), ', '
                                                       ORDER BY place) FILTER (WHERE may_change)))
      INTO parts
      FROM (SELECT c.*, row_number() OVER () AS place, c.name = tenant AS is_tenant, c.name = ANY (key) AS is_key,
                   array_position(key, c.name) AS key_place,
                   -- Paired rows have the same key and tenant; one of them may still be written otherwise, such as 1.0.
                   NOT c.is_exact OR c.name <> ALL (key || tenant) AS may_change
              FROM rowlock.capture_columns(p_table, masked) AS c
             WHERE c.name <> ALL (excluded) OR c.name = ANY (key) OR c.name = tenant) AS c;
    RETURN parts;
END
$$;

-- The statement that stages what the transition tables rowlock_old and rowlock_new say. p_way: INSERT, DELETE, UPDATE, or
-- ONE for an update of one row, whose old and new are known to be one row without a join. NULL: the table is not tracked.
--
-- UPDATE pairs old and new by the primary key. A key that is only among the old rows is a delete, only among the new ones
-- an insert; deletes come first. Foreign keys with actions can change one row several times within a statement, so a key
-- may stand in the transition tables more than once: its first old row and its last new one count.
-- A FULL JOIN, since it is hashed or merged whatever the planner thinks of the tables' size when it plans.
CREATE FUNCTION rowlock.capture_sql(p_table regclass, p_way text) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $capture$
DECLARE
    parts jsonb := rowlock.capture_parts(p_table);
    statement text := 'INSERT INTO rowlock.audit_staged (tenant_id, entry_id, actor, action, object, data)' || CASE p_way
WHEN 'INSERT' THEN $sql$
SELECT <n_tenant>, <id>, <actor>, 'row.insert', <n_object>, concat('{"key":{', <n_key>, '},"new":{', <n_all>, '}}')::json
  FROM rowlock_new AS n$sql$
WHEN 'DELETE' THEN $sql$
SELECT <o_tenant>, <id>, <actor>, 'row.delete', <o_object>, concat('{"key":{', <o_key>, '},"old":{', <o_all>, '}}')::json
  FROM rowlock_old AS o$sql$
WHEN 'ONE' THEN $sql$
SELECT <n_tenant>, <id>, <actor>, 'row.update', <n_object>,
       concat('{"key":{', <n_key>, '},"old":{', <o_changed>, '},"new":{', <n_changed>, '}}')::json
  FROM rowlock_old AS o CROSS JOIN rowlock_new AS n CROSS JOIN LATERAL (SELECT <flags> OFFSET 0) AS c
 WHERE NOT EXISTS (SELECT FROM rowlock_new OFFSET 1) AND <same_key> AND <same_tenant> AND (<any_flag>)$sql$
WHEN 'UPDATE' THEN $sql$
SELECT CASE WHEN e.action = 'row.delete' THEN <o_tenant> ELSE <n_tenant> END, <id>, <actor>, e.action,
       CASE WHEN e.action = 'row.delete' THEN <o_object> ELSE <n_object> END,
       CASE e.action WHEN 'row.delete' THEN concat('{"key":{', <o_key>, '},"old":{', <o_all>, '}}')
                     WHEN 'row.insert' THEN concat('{"key":{', <n_key>, '},"new":{', <n_all>, '}}')
                     ELSE concat('{"key":{', <n_key>, '},"old":{', <o_changed>, '},"new":{', <n_changed>, '}}') END::json
  FROM (SELECT DISTINCT ON (<o_sort>) *, count(*) OVER (PARTITION BY <o_sort>) AS "rowlock times"
          FROM (SELECT *, row_number() OVER () AS "rowlock place" FROM rowlock_old) AS o
         ORDER BY <o_sort>, "rowlock place") AS o
  FULL JOIN (SELECT DISTINCT ON (<n_sort>) *, count(*) OVER (PARTITION BY <n_sort>) AS "rowlock times"
               FROM (SELECT *, row_number() OVER () AS "rowlock place" FROM rowlock_new) AS n
              ORDER BY <n_sort>, "rowlock place" DESC) AS n ON <same_key>
 CROSS JOIN LATERAL (SELECT <flags> OFFSET 0) AS c
  JOIN (VALUES ('row.delete'), ('row.insert'), ('row.update')) AS e (action) ON CASE
           WHEN num_nulls(n.<first_key>) = 1 OR o."rowlock times" > n."rowlock times" THEN e.action = 'row.delete'
           WHEN num_nulls(o.<first_key>) = 1 OR o."rowlock times" < n."rowlock times" THEN e.action = 'row.insert'
           WHEN (<same_tenant>) IS NOT TRUE THEN e.action <> 'row.update'
           ELSE e.action = 'row.update' AND (<any_flag>) END
 ORDER BY e.action$sql$ END;
BEGIN
    -- Time-ordered ids (version 7), as in rowlock.stage.
    parts := parts || jsonb_build_object('id', '(lpad(to_hex((date_part(''epoch'', clock_timestamp()) * 1000)::bigint), 12,'
                                               ' ''0'') || ''-7'' || substr(gen_random_uuid()::text, 16))::uuid');
    -- All pieces at once: a piece may hold a name that looks like the place of another.
    RETURN (SELECT string_agg(t.piece || coalesce(parts ->> p.name[1], ''), '' ORDER BY place)
              FROM regexp_split_to_table(statement, '<\w+>') WITH ORDINALITY AS t (piece, place)
              LEFT JOIN regexp_matches(statement, '<(\w+)>', 'g') WITH ORDINALITY AS p (name, place) USING (place)
             WHERE parts IS NOT NULL);
END
$capture$;

-- How many rows each tenant has.
CREATE FUNCTION rowlock.capture_tenants(p_table regclass, p_tenant_sql text) RETURNS TABLE (tenant text, row_count bigint)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF rowlock.capture_is_blind(p_table) THEN
        RAISE EXCEPTION 'the tracked table % has row-level security that could hide rows from its TRUNCATE''s entries', p_table
            USING ERRCODE = 'RL007', HINT = 'Run rowlock track for it again, or delete the rows.';
    END IF;
    RETURN QUERY EXECUTE format('SELECT %s, count(*) FROM %s AS o GROUP BY 1', p_tenant_sql, p_table);
END
$$;

-- BEFORE TRUNCATE, while the rows are there: one entry for each tenant that has some.
CREATE FUNCTION rowlock.capture_truncate(p_table regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    root regclass := coalesce(pg_partition_root(p_table), p_table);
    parts jsonb := rowlock.capture_parts(root);
BEGIN
    -- TRUNCATE removes what is committed; an older snapshot does not show all of it.
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'a tracked table is truncated at READ COMMITTED, not at %: the snapshot is older than the lock',
                        upper(current_setting('transaction_isolation'))
            USING ERRCODE = 'RL007', HINT = 'Truncate at READ COMMITTED, or delete the rows.';
    END IF;
    EXECUTE format('INSERT INTO rowlock.audit_staged (tenant_id, entry_id, actor, action, object, data)'
                   ' SELECT tenant, gen_random_uuid(), %s, ''table.truncate'', %L,'
                   ' json_build_object(''table'', %L, ''rows'', row_count) FROM rowlock.capture_tenants($1, $2)',
                   parts ->> 'actor', root, p_table)
      USING p_table, parts ->> 'o_tenant';
END
$$;

-- Why the capture of a table is not as rowlock.track left it; NULL where it is.
CREATE FUNCTION rowlock.capture_problem(p_table regclass) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    tracked rowlock.tracked_table;
    part regclass;
    missing text;
BEGIN
    SELECT * INTO tracked FROM rowlock.tracked_table WHERE table_name = p_table;
    IF NOT EXISTS (SELECT FROM pg_class WHERE oid = p_table) THEN
        RETURN 'the table is gone';
    ELSIF p_table::text <> tracked.shown_name THEN
        RETURN 'it was named ' || tracked.shown_name;
    ELSIF rowlock.capture_key(p_table) IS DISTINCT FROM tracked.key_columns THEN
        RETURN 'its primary key has changed';
    END IF;
    FOR part IN SELECT rowlock.capture_tree(p_table) LOOP
        IF rowlock.capture_shape(part) <> ALL (tracked.shapes) THEN
            RETURN format('columns of %s have changed', part);
        END IF;
        SELECT string_agg(w.way, ', ') INTO missing
          FROM unnest(ARRAY['insert', 'update', 'delete', 'truncate']) AS w (way)
         WHERE (w.way <> 'truncate' OR EXISTS (SELECT FROM pg_class WHERE oid = part AND relkind = 'r'))
           AND NOT EXISTS (SELECT FROM pg_trigger AS g JOIN pg_proc AS f ON f.oid = g.tgfoid
                            WHERE g.tgrelid = part AND g.tgname = 'rowlock_capture_' || w.way AND g.tgenabled = 'A'
                              AND f.pronamespace = 'rowlock'::regnamespace AND f.proname = 'capture_' || tracked.capture_id);
        IF missing IS NOT NULL THEN
            RETURN format('%s has no trigger for %s, or a disabled one', part, missing);
        ELSIF rowlock.capture_is_blind(part) THEN
            RETURN format('row-level security of %s could hide rows: TRUNCATE is refused', part);
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;

-- Why this table can't be tracked so, and what to do; NULL where it can.
CREATE FUNCTION rowlock.capture_objection(
    p_table regclass, p_tenant_column name, p_exclude name[], p_mask name[], p_actor_setting text)
    RETURNS TABLE (what text, hint text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    WITH wanted AS (SELECT DISTINCT w.name FROM unnest(p_tenant_column || p_exclude || p_mask) AS w (name)),
         own AS (SELECT * FROM pg_class WHERE oid = p_table)
    SELECT o.what, o.hint FROM (
        SELECT 1, 'is no table of its own', 'Only ordinary and partitioned tables are tracked.' FROM own
         WHERE relkind NOT IN ('r', 'p') OR relpersistence = 't' OR relnamespace = ANY ('{pg_catalog,rowlock}'::regnamespace[])
        UNION ALL
        SELECT 2, 'is a partition', format('Track %s, which takes in all of its partitions.', pg_partition_root(oid))
          FROM own WHERE relispartition
        UNION ALL
        SELECT 3, 'inherits, or is inherited from', 'Only partitions are tracked together: track a table without INHERITS.'
          FROM own WHERE NOT relispartition AND relkind = 'r'
                     AND EXISTS (SELECT FROM pg_inherits WHERE p_table IN (inhrelid, inhparent))
        UNION ALL
        SELECT 4, format('has the partition %s, which is a foreign table', part), 'Its changes are not seen from here: detach it.'
          FROM rowlock.capture_tree(p_table) AS part WHERE EXISTS (SELECT FROM pg_class WHERE oid = part AND relkind = 'f')
        UNION ALL
        SELECT 5, 'has no primary key that is checked at once, so its rows can''t be told apart',
               'ALTER TABLE … ADD PRIMARY KEY (…), not DEFERRABLE.' WHERE rowlock.capture_key(p_table) IS NULL
        UNION ALL
        SELECT 6, format('has no column %s', quote_ident(w.name)), 'Columns are named as they are, without quotes.'
          FROM wanted AS w WHERE NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = p_table AND attname = w.name AND attnum > 0)
        UNION ALL
        SELECT 7, format('may have rows without a tenant: its column %s may be NULL', quote_ident(attname)),
               format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL.', p_table, attname)
          FROM pg_attribute WHERE attrelid = p_table AND attname = p_tenant_column AND NOT attnotnull
        UNION ALL
        SELECT 8, format('needs its column %s in every entry', quote_ident(w.name)),
               'Columns of the primary key and the tenant''s are neither excluded nor masked.'
          FROM unnest(p_exclude || p_mask) AS w (name) WHERE w.name = ANY (rowlock.capture_key(p_table) || p_tenant_column)
        UNION ALL
        SELECT 9, format('has its column %s both excluded and masked', quote_ident(w.name)), 'Leave one of the two out.'
          FROM unnest(p_exclude) AS w (name) WHERE w.name = ANY (p_mask)
        UNION ALL
        SELECT 10, format('can''t take its actor from %s', quote_literal(p_actor_setting)),
               'A setting of your own has a dot in its name, such as app.user.'
         WHERE p_actor_setting !~ '^[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)+$') AS o (place, what, hint)
     ORDER BY o.place LIMIT 1
$$;

-- The function that the triggers of one table call, its statements written out.
CREATE FUNCTION rowlock.capture_function_sql(p_tracked rowlock.tracked_table) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $capture$
    SELECT format('CREATE OR REPLACE FUNCTION rowlock.%I() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER'
                  ' SET search_path = pg_catalog, pg_temp SET DateStyle = ISO SET IntervalStyle = postgres'
                  ' SET extra_float_digits = 1 SET bytea_output = hex AS %L', 'capture_' || p_tracked.capture_id,
                  format($body$
DECLARE
    root regclass := coalesce(pg_partition_root(TG_RELID), TG_RELID);
    statement text;
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        IF EXISTS (SELECT FROM rowlock.tracked_table WHERE table_name = root) THEN
            PERFORM rowlock.capture_truncate(TG_RELID);
        END IF;
        RETURN NULL;
    END IF;
    -- Is it still the table that this was written for? If not, the statement is written anew, for this once.
    IF root::text <> %1$L OR (SELECT bit_xor(hashtextextended(attname::text, atttypid::bigint)) FROM pg_attribute
                               WHERE attrelid = TG_RELID AND attnum > 0 AND NOT attisdropped) <> ALL (%2$L::bigint[]) THEN
        statement := rowlock.capture_sql(root, TG_OP);
    ELSIF TG_OP = 'INSERT' THEN
        %3$s;
        RETURN NULL;
    ELSIF TG_OP = 'DELETE' THEN
        %4$s;
        RETURN NULL;
    ELSE
        %5$s;
        IF FOUND THEN
            RETURN NULL;
        ELSIF rowlock.capture_key(root) IS DISTINCT FROM %6$L::name[] THEN
            statement := rowlock.capture_sql(root, TG_OP);
        ELSE
            %7$s;
            RETURN NULL;
        END IF;
    END IF;
    IF statement IS NOT NULL THEN
        EXECUTE statement;
    END IF;
    RETURN NULL;
END
$body$, p_tracked.shown_name, p_tracked.shapes, rowlock.capture_sql(p_tracked.table_name, 'INSERT'),
                         rowlock.capture_sql(p_tracked.table_name, 'DELETE'),
                         rowlock.capture_sql(p_tracked.table_name, 'ONE'), p_tracked.key_columns,
                         rowlock.capture_sql(p_tracked.table_name, 'UPDATE')))
$capture$;

-- Puts the triggers on one table or partition. ALWAYS: session_replication_role = replica does not turn them off.
CREATE FUNCTION rowlock.capture_attach(p_part regclass, p_function text, p_tenant_column name) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    way text;
    home regnamespace := (SELECT relnamespace FROM pg_class WHERE oid = p_part);
BEGIN
    FOREACH way IN ARRAY ARRAY['insert', 'update', 'delete'] LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER rowlock_capture_%1$s AFTER %1$s ON %2$s REFERENCING %3$s'
                       ' FOR EACH STATEMENT EXECUTE FUNCTION rowlock.%4$I()', way, p_part,
                       CASE way WHEN 'insert' THEN 'NEW TABLE AS rowlock_new' WHEN 'delete' THEN 'OLD TABLE AS rowlock_old'
                                ELSE 'OLD TABLE AS rowlock_old NEW TABLE AS rowlock_new' END, p_function);
        EXECUTE format('ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER rowlock_capture_%s', p_part, way);
    END LOOP;
    -- TRUNCATE of a partitioned table fires the triggers of its partitions: there alone, or rows would count twice.
    IF NOT EXISTS (SELECT FROM pg_class WHERE oid = p_part AND relkind = 'r') THEN
        RETURN;
    END IF;
    EXECUTE format('CREATE OR REPLACE TRIGGER rowlock_capture_truncate BEFORE TRUNCATE ON %s'
                   ' FOR EACH STATEMENT EXECUTE FUNCTION rowlock.%I()', p_part, p_function);
    EXECUTE format('ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER rowlock_capture_truncate', p_part);
    -- It counts the rows of each tenant as rowlock_owner, so that role must see them all.
    EXECUTE format('GRANT SELECT (%I) ON %s TO rowlock_owner', p_tenant_column, p_part);
    IF NOT has_schema_privilege('rowlock_owner', home::oid, 'USAGE') THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %s TO rowlock_owner', home);
    END IF;
    IF rowlock.capture_is_blind(p_part)
       AND NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = p_part AND polname = 'rowlock_capture') THEN
        EXECUTE format('CREATE POLICY rowlock_capture ON %s FOR SELECT TO rowlock_owner USING (true)', p_part);
    END IF;
END
$$;

-- What is left of tables that were dropped.
CREATE FUNCTION rowlock.forget_gone_tables() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    gone int;
BEGIN
    FOR gone IN DELETE FROM rowlock.tracked_table AS t WHERE NOT EXISTS (SELECT FROM pg_class WHERE oid = t.table_name)
                RETURNING t.capture_id LOOP
        EXECUTE format('DROP FUNCTION IF EXISTS rowlock.%I()', 'capture_' || gone);
    END LOOP;
END
$$;

-- Captures the changes of a table from now on. Returns tracked, retracked (it was, otherwise), or unchanged. The caller
-- owns the table and is a member of rowlock_owner, or is a superuser. At READ COMMITTED. Lock: SHARE ROW EXCLUSIVE on the
-- table and its partitions, until the transaction ends: readers go on, writers wait.
CREATE FUNCTION rowlock.track(p_table regclass, p_tenant_column name, p_exclude name[] DEFAULT '{}',
                              p_mask name[] DEFAULT '{}', p_actor_setting text DEFAULT 'rowlock.actor') RETURNS text
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET client_min_messages = warning
AS $$
DECLARE
    excludes name[] := (SELECT coalesce(array_agg(DISTINCT c ORDER BY c), '{}') FROM unnest(p_exclude) AS c);
    masks name[] := (SELECT coalesce(array_agg(DISTINCT c ORDER BY c), '{}') FROM unnest(p_mask) AS c);
    objection record;
    earlier rowlock.tracked_table;
    tracked rowlock.tracked_table;
    part regclass;
BEGIN
    IF EXISTS (SELECT FROM pg_class WHERE oid = p_table AND relkind IN ('r', 'p')) THEN
        EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', p_table);
    END IF;
    SELECT * INTO objection FROM rowlock.capture_objection(p_table, p_tenant_column, excludes, masks, p_actor_setting);
    IF FOUND THEN
        RAISE EXCEPTION 'table % %', p_table, objection.what USING ERRCODE = 'RL008', HINT = objection.hint;
    END IF;
    PERFORM rowlock.forget_gone_tables();
    SELECT * INTO earlier FROM rowlock.tracked_table WHERE table_name = p_table;
    IF FOUND AND (earlier.tenant_column, earlier.excluded, earlier.masked, earlier.actor_setting)
                 = (p_tenant_column, excludes, masks, p_actor_setting)
       AND rowlock.capture_problem(p_table) IS NULL THEN
        RETURN 'unchanged';
    END IF;
    INSERT INTO rowlock.tracked_table AS t
           (table_name, tenant_column, excluded, masked, actor_setting, shown_name, key_columns, tenant_number,
            excluded_numbers, masked_numbers, shapes)
    SELECT p_table, p_tenant_column, excludes, masks, p_actor_setting, p_table::text, rowlock.capture_key(p_table),
           (rowlock.capture_numbers(p_table, ARRAY[p_tenant_column]))[1], rowlock.capture_numbers(p_table, excludes),
           rowlock.capture_numbers(p_table, masks),
           (SELECT array_agg(DISTINCT rowlock.capture_shape(one)) FROM rowlock.capture_tree(p_table) AS one)
        ON CONFLICT (table_name) DO UPDATE SET
           (tenant_column, excluded, masked, actor_setting, shown_name, key_columns, tenant_number, excluded_numbers,
            masked_numbers, shapes, tracked_at)
           = (excluded.tenant_column, excluded.excluded, excluded.masked, excluded.actor_setting, excluded.shown_name,
              excluded.key_columns, excluded.tenant_number, excluded.excluded_numbers, excluded.masked_numbers,
              excluded.shapes, clock_timestamp())
    RETURNING * INTO tracked;
    EXECUTE rowlock.capture_function_sql(tracked);
    EXECUTE format('ALTER FUNCTION rowlock.%I() OWNER TO rowlock_owner', 'capture_' || tracked.capture_id);
    EXECUTE format('REVOKE ALL ON FUNCTION rowlock.%I() FROM PUBLIC', 'capture_' || tracked.capture_id);
    FOR part IN SELECT rowlock.capture_tree(p_table) LOOP
        PERFORM rowlock.capture_attach(part, 'capture_' || tracked.capture_id, p_tenant_column);
    END LOOP;
    RETURN CASE WHEN earlier.table_name IS NULL THEN 'tracked' ELSE 'retracked' END;
END
$$;
COMMENT ON FUNCTION rowlock.track IS 'Stages an entry for every row of the table that is really changed, from now on';

-- rowlock_owner was let into the schema for the tables that it counts the rows of.
CREATE FUNCTION rowlock.capture_leave_schema(p_schema regnamespace) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET client_min_messages = error
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_trigger AS g JOIN pg_class AS c ON c.oid = g.tgrelid
                    WHERE c.relnamespace = p_schema AND g.tgname = 'rowlock_capture_insert') THEN
        EXECUTE format('REVOKE USAGE ON SCHEMA %s FROM rowlock_owner', p_schema);
    END IF;
END
$$;

-- Takes it all away again; false where the table was not tracked. Lock: ACCESS EXCLUSIVE on the table and its partitions.
CREATE FUNCTION rowlock.untrack(p_table regclass) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET client_min_messages = warning
AS $$
DECLARE
    tracked rowlock.tracked_table;
    part record;
BEGIN
    PERFORM rowlock.forget_gone_tables();
    DELETE FROM rowlock.tracked_table WHERE table_name = p_table RETURNING * INTO tracked;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    FOR part IN SELECT DISTINCT g.tgrelid::regclass AS name, a.attname, EXISTS (
                       SELECT FROM pg_policy WHERE polrelid = g.tgrelid AND polname = 'rowlock_capture') AS has_policy
                  FROM pg_proc AS f JOIN pg_trigger AS g ON g.tgfoid = f.oid
                  LEFT JOIN pg_attribute AS a ON a.attrelid = g.tgrelid AND a.attname = ANY (
                       rowlock.capture_names(p_table, ARRAY[tracked.tenant_column], ARRAY[tracked.tenant_number]))
                 WHERE f.pronamespace = 'rowlock'::regnamespace AND f.proname = 'capture_' || tracked.capture_id LOOP
        IF part.attname IS NOT NULL THEN
            EXECUTE format('REVOKE SELECT (%I) ON %s FROM rowlock_owner', part.attname, part.name);
        END IF;
        IF part.has_policy THEN
            EXECUTE format('DROP POLICY rowlock_capture ON %s', part.name);
        END IF;
    END LOOP;
    EXECUTE format('DROP FUNCTION IF EXISTS rowlock.%I() CASCADE', 'capture_' || tracked.capture_id);
    PERFORM rowlock.capture_leave_schema(relnamespace) FROM pg_class WHERE oid = p_table;
    RETURN true;
END
$$;
COMMENT ON FUNCTION rowlock.untrack IS 'Takes the triggers and the function of a tracked table away';

-- Only the owner's members track and untrack. A function that stages entries for any tenant could be put on a table of the
-- app's own, if it might EXECUTE it; so nobody may but its owner, and neither may anybody call what writes it.
REVOKE ALL ON FUNCTION rowlock.capture_tree, rowlock.capture_shape, rowlock.capture_key, rowlock.capture_names,
    rowlock.capture_numbers, rowlock.capture_is_blind, rowlock.refuse_change_without_tenant, rowlock.capture_columns,
    rowlock.capture_parts, rowlock.capture_sql, rowlock.capture_tenants, rowlock.capture_truncate, rowlock.capture_problem,
    rowlock.capture_objection, rowlock.capture_function_sql, rowlock.capture_attach, rowlock.forget_gone_tables,
    rowlock.capture_leave_schema,    rowlock.track, rowlock.untrack FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rowlock.capture_problem, rowlock.capture_tree, rowlock.capture_shape, rowlock.capture_key,
                          rowlock.capture_is_blind TO rowlock_app, rowlock_auditor;

INSERT INTO rowlock.schema_version (version, name) VALUES (8, 'change_capture');
RESET ROLE;
