-- What the accounts of accounts.sql need besides where any statement may reach any replica, as in ClickHouse Cloud
-- (CLICKHOUSE_REPLICATION=shared): docs/operate/existing-cluster.md#clickhouse-cloud says how to run this.
-- It may be run again.

-- A writer ends what writers before it have sent, at all replicas, and looks whether it has ended. The first two rights let it end the
-- statements of all users, and run what it may run on all replicas: ClickHouse has no smaller ones for that. Older versions say
-- REMOTE ON *.* in place of READ ON REMOTE.
GRANT KILL QUERY ON *.* TO sluice_writer;
GRANT CLUSTER ON *.* TO sluice_writer;
GRANT READ ON REMOTE TO sluice_writer;
GRANT SELECT ON system.zookeeper_connection TO sluice_writer;

-- What Cloud makes of the engines that migrations name.
GRANT TABLE ENGINE ON SharedMergeTree TO sluice_migrate;
GRANT TABLE ENGINE ON SharedReplacingMergeTree TO sluice_migrate;
GRANT TABLE ENGINE ON SharedAggregatingMergeTree TO sluice_migrate;
