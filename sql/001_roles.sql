-- Roles, the schema itself, its version, and the name of this ledger.
--
-- Run the files of this folder in the order of their numbers, each inside a transaction; `rowlock schema sql` prints
-- them as one script that does so. A superuser may run them, or a role with CREATEROLE that may CREATE in this database.
-- Nothing here knows a key: the MACs of the log are computed outside of the server.

DO $check$
BEGIN
    -- security_invoker views came with 15; below it audit_entries would show every tenant to everybody.
    IF current_setting('server_version_num')::int < 150000 THEN
        RAISE EXCEPTION 'rowlock needs PostgreSQL 15 or later; this is %', current_setting('server_version')
            USING ERRCODE = 'feature_not_supported';
    END IF;
    -- A MAC covers the bytes of a text. In another encoding the client would see other bytes than the server keeps.
    IF current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION 'rowlock needs a database in UTF8; this one is in %', current_setting('server_encoding')
            USING ERRCODE = 'feature_not_supported',
                  HINT = 'Make one with CREATE DATABASE … ENCODING ''UTF8'' TEMPLATE template0.';
    END IF;
END
$check$;

-- Roles belong to the whole server. Two databases may install at the same moment, and the advisory lock of the installer
-- is per database, so losing the race for a name is as good as winning it.
DO $roles$
DECLARE
    role_name text;
BEGIN
    FOREACH role_name IN ARRAY ARRAY['rowlock_owner', 'rowlock_app', 'rowlock_auditor', 'rowlock_sealer',
                                     'rowlock_backup'] LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = role_name);
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role_name);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;
        END;
    END LOOP;
END
$roles$;

-- BYPASSRLS makes pg_dump and COPY FROM work on tables with forced row-level security. Only a superuser can give it.
-- It is not inherited by members: use SET ROLE, or pg_dump --role=rowlock_backup.
DO $bypass$
DECLARE
    role_name text;
BEGIN
    FOREACH role_name IN ARRAY ARRAY['rowlock_sealer', 'rowlock_backup'] LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = role_name AND rolbypassrls);
        BEGIN
            EXECUTE format('ALTER ROLE %I BYPASSRLS', role_name);
        EXCEPTION
            WHEN insufficient_privilege THEN
                RAISE NOTICE 'role % is without BYPASSRLS, which only a superuser can give', role_name
                    USING HINT = 'The sealer then appends by INSERT, and a backup needs pg_dump --enable-row-security.';
            WHEN internal_error THEN
                -- "tuple concurrently updated": another database's installer is giving the same attribute.
                NULL;
        END;
    END LOOP;
END
$bypass$;

-- Who is no superuser can make things for rowlock_owner only as a member of it. The membership stays: the next upgrade
-- and an uninstall need it, too.
DO $member$
BEGIN
    IF NOT (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user)
       AND NOT pg_has_role(current_user, 'rowlock_owner', 'USAGE') THEN
        BEGIN
            EXECUTE format('GRANT rowlock_owner TO %I', current_user);
        EXCEPTION WHEN unique_violation THEN
            NULL;
        END;
    END IF;
END
$member$;

CREATE SCHEMA rowlock AUTHORIZATION rowlock_owner;

-- From here on everything is made by its owner, so that nothing is left with the role that happened to install.
SET LOCAL ROLE rowlock_owner;

COMMENT ON SCHEMA rowlock IS 'Gapless numbers and a tamper-evident audit log, per tenant';

-- PUBLIC may look up names here, so that any role can be told "the schema is older than this program". What it may read
-- is schema_version and nothing else; every other table and function is granted one by one.
GRANT USAGE ON SCHEMA rowlock TO PUBLIC;

-- Rules on values are domains and not CHECKs of the tables: the server reads a CHECK's expression from its stored form
-- again for every statement, a domain's once for each session. As CHECKs they made an append half as slow again.
-- tenant: text, since UUIDs, integers and slugs all fit, and comparing it with a setting needs no cast that can fail.
-- COLLATE "C": compared byte by byte, and untouched by an upgrade of the operating system's collations.
CREATE DOMAIN rowlock.tenant AS text COLLATE "C"
    CONSTRAINT tenant_length CHECK (octet_length(VALUE) BETWEEN 1 AND 256);
CREATE DOMAIN rowlock.mac AS bytea
    CONSTRAINT mac_length CHECK (octet_length(VALUE) = 32);
CREATE DOMAIN rowlock.key_name AS text
    CONSTRAINT key_named CHECK (VALUE <> '');
-- json and not jsonb: it keeps the bytes that were signed. But what jsonb can't hold (\u0000, a number out of range) is
-- refused, since one such row would break every later query that looks into data. The cast itself throws.
CREATE DOMAIN rowlock.json_for_jsonb AS json
    CONSTRAINT json_fits_jsonb CHECK (VALUE IS NULL OR VALUE::jsonb IS NOT NULL);
CREATE DOMAIN rowlock.always_null AS boolean
    CONSTRAINT stays_null CHECK (VALUE IS NULL);

CREATE TABLE rowlock.schema_version (
    version      int         NOT NULL CONSTRAINT schema_version_pkey PRIMARY KEY,
    name         text        NOT NULL,
    installed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE rowlock.schema_version IS 'The migrations that this database has; the highest version is the schema''s';
GRANT SELECT ON rowlock.schema_version TO PUBLIC;

-- The ledger's own name goes into the first MAC of every chain, so that a chain of one database can't be played as one
-- of another.
CREATE TABLE rowlock.ledger (
    only_row   boolean     NOT NULL DEFAULT true CONSTRAINT ledger_pkey PRIMARY KEY
                           CONSTRAINT ledger_one_row CHECK (only_row),
    ledger_id  uuid        NOT NULL DEFAULT gen_random_uuid(),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE rowlock.ledger IS 'One row: the id of this ledger, which every chain''s first MAC covers';
INSERT INTO rowlock.ledger DEFAULT VALUES;
GRANT SELECT ON rowlock.ledger TO rowlock_app, rowlock_auditor, rowlock_sealer, rowlock_backup;

INSERT INTO rowlock.schema_version (version, name) VALUES (1, 'roles');
RESET ROLE;
