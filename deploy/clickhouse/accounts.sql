-- The four accounts of Sluice in ClickHouse: docs/operate/secure.md#accounts says how to run this, and what each may do.
-- It may be run again, after an upgrade or with new passwords: it takes no rights away, and keeps limits that you changed.
-- `ON *` is every table of the database that USE has chosen, also one that an upgrade adds.
CREATE DATABASE IF NOT EXISTS {database:Identifier};
USE {database:Identifier};

-- Creates and changes tables, copies rows in migrations, and makes backups of the database.
-- It may end its own statements.
CREATE USER IF NOT EXISTS sluice_migrate IDENTIFIED WITH sha256_hash BY {migrate_password_sha256:String};
ALTER USER sluice_migrate IDENTIFIED WITH sha256_hash BY {migrate_password_sha256:String};
GRANT CREATE DATABASE, CREATE TABLE, SHOW TABLES, SELECT, INSERT, BACKUP ON * TO sluice_migrate;
GRANT SYSTEM SYNC REPLICA ON * TO sluice_migrate;
GRANT ALTER COLUMN, ALTER INDEX, ALTER STATISTICS, ALTER PROJECTION, ALTER CONSTRAINT ON * TO sluice_migrate;
GRANT ALTER TTL, ALTER MATERIALIZE TTL, ALTER SETTINGS, ALTER MODIFY COMMENT ON * TO sluice_migrate;
GRANT TABLE ENGINE ON MergeTree TO sluice_migrate;
GRANT TABLE ENGINE ON ReplacingMergeTree TO sluice_migrate;
GRANT TABLE ENGINE ON AggregatingMergeTree TO sluice_migrate;
GRANT TABLE ENGINE ON ReplicatedMergeTree TO sluice_migrate;
GRANT TABLE ENGINE ON ReplicatedReplacingMergeTree TO sluice_migrate;
GRANT TABLE ENGINE ON ReplicatedAggregatingMergeTree TO sluice_migrate;
GRANT SELECT ON system.backups TO sluice_migrate;
GRANT SELECT ON system.mutations TO sluice_migrate;
GRANT SELECT ON system.merges TO sluice_migrate;
GRANT SELECT ON system.parts TO sluice_migrate;
GRANT SELECT ON system.processes TO sluice_migrate;

-- Stores rows by way of temporary tables, erases those of deleted users, fills the columns of fast properties, and moves old months to
-- another disk. It may end its own statements alone, and waits for replicas.
CREATE USER IF NOT EXISTS sluice_writer IDENTIFIED WITH sha256_hash BY {writer_password_sha256:String};
ALTER USER sluice_writer IDENTIFIED WITH sha256_hash BY {writer_password_sha256:String};
GRANT SHOW TABLES, SELECT, INSERT, ALTER DELETE, ALTER UPDATE, ALTER MOVE PARTITION ON * TO sluice_writer;
GRANT SYSTEM SYNC REPLICA ON * TO sluice_writer;
GRANT CREATE TEMPORARY TABLE ON *.* TO sluice_writer;
GRANT TABLE ENGINE ON Memory TO sluice_writer;
GRANT SELECT ON system.processes TO sluice_writer;
GRANT SELECT ON system.mutations TO sluice_writer;
GRANT SELECT ON system.parts TO sluice_writer;
GRANT SELECT ON system.disks TO sluice_writer;
GRANT SELECT ON system.storage_policies TO sluice_writer;
GRANT SELECT ON system.moves TO sluice_writer;
GRANT SELECT ON system.merge_tree_settings TO sluice_writer;
GRANT SELECT ON system.replicas TO sluice_writer;

-- Reads, and nothing else. query-api sends the limits of each query, which may not exceed these. 0 would be no limit.
CREATE SETTINGS PROFILE IF NOT EXISTS sluice_query SETTINGS
  max_memory_usage = 1073741824 MIN 1 MAX 17179869184,
  allow_ddl = 0 READONLY,
  allow_introspection_functions = 0 READONLY;
CREATE USER IF NOT EXISTS sluice_query IDENTIFIED WITH sha256_hash BY {query_password_sha256:String}
  SETTINGS PROFILE sluice_query;
ALTER USER sluice_query IDENTIFIED WITH sha256_hash BY {query_password_sha256:String};
GRANT SELECT ON * TO sluice_query;
GRANT SELECT ON system.replicas TO sluice_query;

-- Stores the state of webhooks for query-api, and what the console keeps, and nothing else: their tables have names that begin
-- with `webhook` and `console`.
CREATE USER IF NOT EXISTS sluice_webhooks IDENTIFIED WITH sha256_hash BY {webhooks_password_sha256:String};
ALTER USER sluice_webhooks IDENTIFIED WITH sha256_hash BY {webhooks_password_sha256:String};
GRANT SELECT, INSERT, ALTER DELETE ON webhook* TO sluice_webhooks;
GRANT SELECT, INSERT, ALTER DELETE ON console* TO sluice_webhooks;

-- The secrets of webhooks are for that account, and for backups. A grant for all tables takes such an exception back, so these come last.
REVOKE SELECT, INSERT, ALTER DELETE ON webhooks FROM sluice_writer;
REVOKE SELECT ON webhooks FROM sluice_query;
