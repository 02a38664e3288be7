# An audit entry with a change of your own, from Python: python3 audit.py. The connection is libpq's own (PGHOST, …).
import psycopg2

tenant = "acme"
connection = psycopg2.connect("")

with connection, connection.cursor() as cursor:  # one transaction: both happen, or neither
    cursor.execute("SELECT set_config('rowlock.tenant', %s, true)", (tenant,))
    cursor.execute("UPDATE account SET owner = %s WHERE id = %s", ("bob", 1))
    cursor.execute("SELECT rowlock.stage(%s, 'account.owner', 'account 1', %s, 'ann')", (tenant, '{"to": "bob"}'))
print("staged")

with connection, connection.cursor() as cursor:  # what `rowlock seal` has put into the log by now
    cursor.execute("SELECT set_config('rowlock.tenant', %s, true)", (tenant,))
    cursor.execute("SELECT seq, actor, action, object, data ->> 'to' FROM rowlock.audit_entries ORDER BY seq")
    for row in cursor:
        print(*row)
connection.close()
