// An audit entry with a change of your own, from Node.js: node audit.mjs. The connection is pg's own (PGHOST, …).
import pg from 'pg';

const tenant = 'acme';
const client = new pg.Client();
await client.connect();

await client.query('BEGIN'); // one transaction: both happen, or neither
await client.query("SELECT set_config('rowlock.tenant', $1, true)", [tenant]);
await client.query('UPDATE account SET owner = $1 WHERE id = $2', ['bob', 1]);
await client.query("SELECT rowlock.stage($1, 'account.owner', 'account 1', $2, 'ann')", [tenant, { to: 'bob' }]);
await client.query('COMMIT');
console.log('staged');

await client.query('BEGIN'); // what `rowlock seal` has put into the log by now
await client.query("SELECT set_config('rowlock.tenant', $1, true)", [tenant]);
const log = await client.query("SELECT seq, actor, action, object, data ->> 'to' AS owner FROM rowlock.audit_entries ORDER BY seq");
await client.query('COMMIT');
for (const entry of log.rows) console.log(Object.values(entry).join(' '));
await client.end();
