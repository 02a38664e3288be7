-- Ids of captured changes that a session can't foresee.
--
-- Half of such an id came from random(), and a session may seed that: it could stage an entry with the id to come, and have
-- the captured change quarantined as its double. The rest of capture_sql is as it was.

SET LOCAL ROLE rowlock_owner;

-- The statement that stages what the transition tables rowlock_old and rowlock_new say. p_way: INSERT, DELETE, UPDATE, or
-- ONE for an update of one row, whose old and new are known to be one row without a join. NULL: the table is not tracked.
--
-- UPDATE pairs old and new by the primary key. A key that is only among the old rows is a delete, only among the new ones
-- an insert; deletes come first. Foreign keys with actions can change one row several times within a statement, so a key
-- may stand in the transition tables more than once: its first old row and its last new one count.
-- A FULL JOIN, since it is hashed or merged whatever the planner thinks of the tables' size when it plans.
CREATE OR REPLACE FUNCTION rowlock.capture_sql(p_table regclass, p_way text) RETURNS text
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
  FROM (SELECT * FROM rowlock_old WHERE NOT EXISTS (SELECT FROM rowlock_new OFFSET 1)) AS o CROSS JOIN rowlock_new AS n
 CROSS JOIN LATERAL (SELECT <flags> OFFSET 0) AS c
 WHERE <same_key> AND <same_tenant> AND (<any_flag>)$sql$
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
    -- Time-ordered (version 7). The statement's time, since it stands there twice. The rest is not from random().
    parts := parts || jsonb_build_object('id', format(
        'encode(int8send(%1$s + (%1$s >> 12) * 61440 + 28672)'
        ' || substr(uuid_send(gen_random_uuid()), 9), ''hex'')::uuid',
        '(date_part(''epoch'', statement_timestamp()) * 4096000)::bigint'));
    -- All pieces at once: a piece may hold a name that looks like the place of another.
    RETURN (SELECT string_agg(t.piece || coalesce(parts ->> p.name[1], ''), '' ORDER BY place)
              FROM regexp_split_to_table(statement, '<\w+>') WITH ORDINALITY AS t (piece, place)
              LEFT JOIN regexp_matches(statement, '<(\w+)>', 'g') WITH ORDINALITY AS p (name, place) USING (place)
             WHERE parts IS NOT NULL);
END
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

INSERT INTO rowlock.schema_version (version, name) VALUES (18, 'captured_ids_unforeseen');
RESET ROLE;
