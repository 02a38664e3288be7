-- An audit entry with a change of your own, from psql: psql -f audit.sql. The connection is psql's own (PGHOST, …).
\set ON_ERROR_STOP on
\set tenant acme
BEGIN;
SELECT set_config('rowlock.tenant', :'tenant', true) AS tenant \gset
UPDATE account SET owner = 'bob' WHERE id = 1;
SELECT rowlock.stage(:'tenant', 'account.owner', 'account 1', '{"to": "bob"}', 'ann') AS entry_id \gset
COMMIT;
\echo staged

-- What `rowlock seal` has put into the log by now.
BEGIN;
SELECT set_config('rowlock.tenant', :'tenant', true) AS tenant \gset
\pset format unaligned
\pset tuples_only on
\pset fieldsep ' '
SELECT seq, actor, action, object, data ->> 'to' FROM rowlock.audit_entries ORDER BY seq;
COMMIT;
