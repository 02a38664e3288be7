-- When the last checkpoint was made, for rowlock status: a checkpoint that nobody makes any more is otherwise noticed when
-- it is needed.
--
-- The checkpoint itself is a file elsewhere, or it proves nothing; this says that one was made, not that it is still kept.
-- Nothing is verified with it, so whoever forges it gains nothing but a wrong age on a screen. No row-level security: it
-- names no tenant.

SET LOCAL ROLE rowlock_owner;

CREATE TABLE rowlock.checkpoint_noted (
    only_row  boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    made_at   timestamptz NOT NULL,
    tenants   bigint      NOT NULL CHECK (tenants >= 0),
    entries   bigint      NOT NULL CHECK (entries >= 0)
);
COMMENT ON TABLE rowlock.checkpoint_noted IS
    'When rowlock checkpoint last wrote a file, and of how much; written by note_checkpoint';
GRANT SELECT ON rowlock.checkpoint_noted TO rowlock_app, rowlock_auditor, rowlock_backup;

-- p_made_us: microseconds since 1970-01-01 UTC. An older one than what is noted changes nothing.
CREATE FUNCTION rowlock.note_checkpoint(p_made_us bigint, p_tenants bigint, p_entries bigint) RETURNS void
    LANGUAGE sql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
    -- Lock: the one row, until the transaction ends.
    INSERT INTO rowlock.checkpoint_noted (made_at, tenants, entries)
    VALUES (least(timestamptz 'epoch' + p_made_us / 1000000 * interval '1 second'
                                      + p_made_us % 1000000 * interval '1 microsecond', clock_timestamp()),
            p_tenants, p_entries)
        ON CONFLICT (only_row) DO UPDATE
       SET made_at = EXCLUDED.made_at, tenants = EXCLUDED.tenants, entries = EXCLUDED.entries
     WHERE checkpoint_noted.made_at <= EXCLUDED.made_at;
$$;
COMMENT ON FUNCTION rowlock.note_checkpoint IS 'Notes that a checkpoint of all tenants was made; for who may see them all';
REVOKE ALL ON FUNCTION rowlock.note_checkpoint FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rowlock.note_checkpoint TO rowlock_auditor;

INSERT INTO rowlock.schema_version (version, name) VALUES (11, 'checkpoint_noted');
RESET ROLE;
