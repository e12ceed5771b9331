-- The tables after all migrations. npm run schema -- --write writes this file, and a test compares it.

CREATE TABLE audit_differences
(
    `audit_id` UUID,
    `workspace_id` LowCardinality(String),
    `hour` DateTime('UTC'),
    `kind` LowCardinality(String),
    `difference` LowCardinality(String),
    `key` String,
    `topic` LowCardinality(String),
    `partition` Nullable(UInt32),
    `offset` Nullable(Int64),
    `line` Nullable(UInt32),
    `detail` String,
    `recorded_at` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = MergeTree
ORDER BY (audit_id, workspace_id, hour)
TTL toDateTime(recorded_at) + toIntervalDay(30)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE audited_hours
(
    `workspace_id` LowCardinality(String),
    `hour` DateTime('UTC'),
    `kind` LowCardinality(String),
    `accepted` UInt64,
    `stored` UInt64,
    `repeats` UInt64,
    `dead_letters` UInt64,
    `deleted` UInt64,
    `expired` UInt64,
    `waiting` UInt64,
    `given_up` UInt64,
    `unknown` UInt64,
    `missing` UInt64,
    `invented` UInt64,
    `duplicates` UInt64,
    `audit_id` UUID,
    `audited_at` DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(audited_at)
PARTITION BY toYYYYMM(hour)
ORDER BY (workspace_id, hour, kind)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE audits
(
    `id` UUID,
    `started_at` DateTime64(6, 'UTC'),
    `finished_at` Nullable(DateTime64(6, 'UTC')),
    `since` DateTime('UTC'),
    `until` DateTime('UTC'),
    `workspace_id` String,
    `share` UInt32,
    `shares` UInt32,
    `sluice_version` String,
    `accepted` UInt64,
    `missing` UInt64,
    `invented` UInt64,
    `duplicates` UInt64,
    `balanced_through` DateTime('UTC'),
    `notes` Array(String),
    `state_at` DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(state_at)
ORDER BY id
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE backups
(
    `id` UUID,
    `started_at` DateTime64(6, 'UTC'),
    `finished_at` Nullable(DateTime64(6, 'UTC')),
    `destination` String,
    `bytes` UInt64,
    `sluice_version` String,
    `migration` UInt32,
    `group_id` String,
    `topics` Array(Tuple(
        topic String,
        partitions UInt32)),
    `positions` Array(Tuple(
        topic String,
        partition UInt32,
        next_offset Int64,
        fingerprint String,
        leader_epoch Int32)),
    `state_at` DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(state_at)
ORDER BY id
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE console_documents
(
    `kind` LowCardinality(String),
    `workspace_id` String,
    `id` UUID,
    `content` String,
    `created_at` DateTime64(3, 'UTC'),
    `is_deleted` Bool,
    `changed_at` DateTime64(6, 'UTC') DEFAULT now64(6),
    INDEX link_hash JSONExtractString(content, 'hash') TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(changed_at)
ORDER BY (kind, workspace_id, id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192, non_replicated_deduplication_window = 10000;

CREATE TABLE console_fast_properties
(
    `workspace_id` String,
    `names` Array(String),
    `fast_set` UInt64 DEFAULT if(arrayExists(name -> (name != ''), names), greatest(1, sipHash64('1', toString(names))), 0),
    `declared_at` DateTime64(6, 'UTC') DEFAULT now64(6),
    `row_set` UInt64 DEFAULT if(arrayExists(name -> (name != ''), names), greatest(65536, bitAnd(sipHash64('2', toString(names)), 18446744073709486080)), 0)
)
ENGINE = ReplacingMergeTree(declared_at)
ORDER BY (workspace_id, fast_set)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE console_identity_settings
(
    `workspace_id` String,
    `identity` LowCardinality(String),
    `set_at` DateTime64(6, 'UTC')
)
ENGINE = ReplacingMergeTree(set_at)
ORDER BY (workspace_id, identity)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE console_property_reads
(
    `workspace_id` String,
    `day` Date,
    `process` UUID,
    `names` Array(String),
    `reads` Array(UInt64),
    `bytes` Array(UInt64),
    `stored_at` DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(stored_at)
ORDER BY (workspace_id, day, process)
TTL day + toIntervalDay(9)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE copies
(
    `run` UUID,
    `step` LowCardinality(String),
    `source` String,
    `source_id` String,
    `partition` String,
    `rows` UInt64,
    `positions` Array(Tuple(
        topic String,
        partition UInt32,
        next_offset Int64,
        fingerprint String,
        leader_epoch Int32)),
    `recorded_at` DateTime64(6, 'UTC')
)
ENGINE = MergeTree
ORDER BY recorded_at
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE database_identity
(
    `id` UUID,
    `server` String,
    `group_id` String,
    `partitions` String,
    `state` LowCardinality(String),
    `detail` String,
    `recorded_at` DateTime64(6, 'UTC')
)
ENGINE = MergeTree
ORDER BY recorded_at
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE dead_letters
(
    `id` String,
    `state_at` DateTime64(6, 'UTC') DEFAULT now64(6),
    `recorded_at` DateTime64(3, 'UTC') DEFAULT now64(3),
    `replayed_at` Nullable(DateTime64(3, 'UTC')),
    `kind` LowCardinality(String),
    `format` LowCardinality(String),
    `topic` LowCardinality(String),
    `partition` UInt32,
    `offset` Int64,
    `line` UInt32,
    `reason` String,
    `row` String CODEC(ZSTD(3)),
    `workspace_id` String MATERIALIZED if(isValidJSON(row), JSONExtractString(row, 'workspace_id'), JSONExtractString(concat('[', extract(row, '"workspace_id":("(?:[^"\\\\]|\\\\.)*")'), ']'), 1)),
    `user_id` String MATERIALIZED multiIf((format != '1') OR (position(trimRight(row), '\n') > 0), '', (kind IN ('events', 'rejected')) AND isValidJSON(row), multiIf(JSONExtractString(row, 'user_id') != '', JSONExtractString(row, 'user_id'), JSONExtractString(row, 'anonymous_id') != '', concat('￿', JSONExtractString(row, 'anonymous_id')), ''), (kind IN ('events', 'rejected')) AND (position(row, '"user_id":"') > 0), JSONExtractString(concat('[', extract(row, '"user_id":("(?:[^"\\\\]|\\\\.)*")'), ']'), 1), (kind IN ('events', 'rejected')) AND (position(row, '"anonymous_id":"') > 0), concat('￿', JSONExtractString(concat('[', extract(row, '"anonymous_id":("(?:[^"\\\\]|\\\\.)*")'), ']'), 1)), (kind = 'changes') AND isValidJSON(row), if(JSONExtractString(row, 'kind') = 'user', JSONExtractString(row, 'id'), ''), (kind = 'changes') AND (position(row, '"kind":"user"') > 0), JSONExtractString(concat('[', extract(row, '"id":("(?:[^"\\\\]|\\\\.)*")'), ']'), 1), ''),
    `version` UInt64 MATERIALIZED if(isValidJSON(row), JSONExtractUInt(row, if((kind IN ('events', 'rejected')), 'received_at', 'version')), toUInt64OrZero(extract(row, '"(?:received_at|version)":(\\d+)'))),
    `is_of_one_workspace` Bool MATERIALIZED (format = '1') AND (position(row, '\n') = 0) AND startsWith(row, concat('{"workspace_id":"', workspace_id, '",')),
    `client` String MATERIALIZED if(kind = 'rejected', JSONExtractString(row, 'client'), ''),
    `row_bytes` UInt64 MATERIALIZED length(row),
    PROJECTION by_time
    (
        SELECT
            workspace_id,
            recorded_at,
            id,
            state_at,
            replayed_at,
            kind,
            topic,
            partition,
            offset,
            line,
            reason,
            user_id,
            version,
            is_of_one_workspace,
            client,
            row_bytes
        ORDER BY
            workspace_id,
            recorded_at,
            id
    )
)
ENGINE = ReplacingMergeTree(state_at)
ORDER BY id
TTL toDateTime(recorded_at) + toIntervalDay(30) WHERE kind = 'rejected'
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192, deduplicate_merge_projection_mode = 'rebuild';

CREATE TABLE ended_batches
(
    `id` UUID,
    `ended_at` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = MergeTree
ORDER BY id
TTL toDateTime(ended_at) + toIntervalDay(7)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE entities
(
    `workspace_id` LowCardinality(String),
    `kind` LowCardinality(String),
    `id` String,
    `first_seen_at` SimpleAggregateFunction(min, DateTime64(3, 'UTC')),
    `last_seen_at` SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
    `version` SimpleAggregateFunction(max, UInt64),
    `other_id` String,
    INDEX other_id_range other_id TYPE minmax GRANULARITY 1,
    PROJECTION by_first_seen
    (
        SELECT
            workspace_id,
            kind,
            first_seen_at,
            id
        ORDER BY
            workspace_id,
            kind,
            first_seen_at,
            id
    ),
    PROJECTION by_last_seen
    (
        SELECT
            workspace_id,
            kind,
            last_seen_at,
            id
        ORDER BY
            workspace_id,
            kind,
            last_seen_at,
            id
    )
)
ENGINE = AggregatingMergeTree
PRIMARY KEY (workspace_id, kind, id)
ORDER BY (workspace_id, kind, id, other_id)
SETTINGS index_granularity = 128, min_compress_block_size = 2048, max_compress_block_size = 4096, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, deduplicate_merge_projection_mode = 'rebuild';

CREATE TABLE entity_properties
(
    `workspace_id` LowCardinality(String),
    `kind` LowCardinality(String),
    `id` String,
    `property` String,
    `register` SimpleAggregateFunction(max, Tuple(
        version UInt64,
        change_id UUID,
        operation Enum8('set' = 1, 'remove' = 2),
        value String)),
    `once_week` UInt16,
    INDEX values_text arrayMap(piece -> hex(toUInt32(sipHash64(workspace_id, kind, property, piece))), arrayPushFront(splitByChar(',', translate(tupleElement(register, 'value'), '{}[]', ',,,,')), '')) TYPE text(tokenizer = 'array') GRANULARITY 100000000
)
ENGINE = AggregatingMergeTree
PRIMARY KEY (workspace_id, kind, id, property)
ORDER BY (workspace_id, kind, id, property, once_week)
SETTINGS index_granularity = 128, min_compress_block_size = 2048, max_compress_block_size = 4096, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864;

CREATE TABLE events
(
    `workspace_id` LowCardinality(String),
    `timestamp` DateTime64(3, 'UTC') CODEC(Delta(8), Default),
    `uuid` UUID,
    `type` LowCardinality(String) DEFAULT 'track',
    `event` LowCardinality(String),
    `user_id` String,
    `group_id` String,
    `anonymous_id` String,
    `instance_id` String,
    `properties` String DEFAULT '{}' SETTINGS (min_compress_block_size = 8192, max_compress_block_size = 16384),
    `context` String DEFAULT '{}' SETTINGS (min_compress_block_size = 8192, max_compress_block_size = 16384),
    `traits` String DEFAULT '{}',
    `received_at` DateTime64(6, 'UTC') CODEC(Delta(8), Default),
    `fast_set` UInt64,
    `fast_1` LowCardinality(String),
    `fast_2` LowCardinality(String),
    `fast_3` LowCardinality(String),
    `fast_4` LowCardinality(String),
    `fast_5` LowCardinality(String),
    `fast_6` LowCardinality(String),
    `fast_7` LowCardinality(String),
    `fast_8` LowCardinality(String),
    `fast_9` String,
    `fast_10` String,
    `fast_11` String,
    `fast_12` String,
    `fast_13` String,
    `fast_14` String,
    `fast_15` String,
    `fast_16` String,
    INDEX user_id_text user_id TYPE text(tokenizer = 'array') GRANULARITY 100000000,
    INDEX group_id_text group_id TYPE text(tokenizer = 'array') GRANULARITY 100000000,
    INDEX anonymous_id_text anonymous_id TYPE text(tokenizer = 'array') GRANULARITY 100000000,
    INDEX instance_id_text instance_id TYPE text(tokenizer = 'array') GRANULARITY 100000000,
    INDEX event_text event TYPE text(tokenizer = 'array') GRANULARITY 100000000,
    INDEX uuid_text substring(toString(uuid), 31) TYPE text(tokenizer = 'array') GRANULARITY 100000000,
    INDEX properties_text splitByChar(',', translate(properties, '{}[]', ',,,,')) TYPE text(tokenizer = 'array') GRANULARITY 100000000,
    INDEX fast_set_values fast_set TYPE set(64) GRANULARITY 64,
    PROJECTION by_hour
    (
        SELECT
            workspace_id,
            type,
            event,
            toStartOfInterval(timestamp, toIntervalMillisecond(3600000)),
            count(),
            min(timestamp),
            max(timestamp)
        GROUP BY
            workspace_id,
            type,
            event,
            toStartOfInterval(timestamp, toIntervalMillisecond(3600000))
    ),
    PROJECTION by_day
    (
        SELECT
            workspace_id,
            type,
            event,
            toStartOfInterval(timestamp, toIntervalMillisecond(86400000)),
            count(),
            min(timestamp),
            max(timestamp)
        GROUP BY
            workspace_id,
            type,
            event,
            toStartOfInterval(timestamp, toIntervalMillisecond(86400000))
    )
)
ENGINE = ReplacingMergeTree
PARTITION BY if((toDate(received_at) - toDate(timestamp)) > 90, toYear(timestamp), toYYYYMM(timestamp))
ORDER BY (workspace_id, timestamp, toUInt128(uuid))
TTL toDateTime(received_at) + toIntervalDay(30) RECOMPRESS CODEC(ZSTD(1))
SETTINGS index_granularity = 128, min_compress_block_size = 2048, max_compress_block_size = 4096, min_age_to_force_merge_seconds = 3024000, min_age_to_force_merge_on_partition_only = 1, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, deduplicate_merge_projection_mode = 'rebuild', enable_block_number_column = 1, max_number_of_merges_with_ttl_in_pool = 0, materialize_ttl_recalculate_only = 1, enable_vertical_merge_algorithm = 0;

CREATE TABLE given_up_messages
(
    `group_id` String,
    `topic` LowCardinality(String),
    `partition` UInt32,
    `first_offset` Int64,
    `last_offset` Int64,
    `given_up_at` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree
ORDER BY (group_id, topic, partition, first_offset, last_offset)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE identity_deletions
(
    `workspace_id` LowCardinality(String),
    `user_id` String,
    `version` UInt64,
    `settled_at` SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY (workspace_id, user_id, version)
SETTINGS index_granularity = 128, min_compress_block_size = 2048, max_compress_block_size = 4096, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864;

CREATE TABLE identity_links
(
    `workspace_id` LowCardinality(String),
    `anonymous_id` String,
    `user_id` String,
    `version` UInt64,
    `said` UInt8,
    INDEX user_id_text user_id TYPE text(tokenizer = 'array') GRANULARITY 100000000
)
ENGINE = ReplacingMergeTree
ORDER BY (workspace_id, anonymous_id, user_id, version, said)
SETTINGS index_granularity = 128, min_compress_block_size = 2048, max_compress_block_size = 4096, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864;

CREATE TABLE log_gaps
(
    `topic` LowCardinality(String),
    `partition` UInt32,
    `reason` LowCardinality(String),
    `detail` String,
    `first_offset` Nullable(Int64),
    `last_offset` Nullable(Int64),
    `noticed_at` DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree
ORDER BY (topic, partition, noticed_at)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE pending_deletions
(
    `workspace_id` LowCardinality(String),
    `user_id` String,
    `version` SimpleAggregateFunction(max, UInt64),
    `stored_at` SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY (workspace_id, user_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE retention
(
    `workspace_id` String,
    `days` UInt32,
    `set_at` DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(set_at)
ORDER BY workspace_id
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE schema_migrations
(
    `number` UInt32,
    `name` String,
    `checksum` String,
    `applied_at` DateTime DEFAULT now()
)
ENGINE = ReplacingMergeTree
ORDER BY number
SETTINGS index_granularity = 8192;

CREATE TABLE server_comparisons
(
    `compared_at` DateTime64(3, 'UTC'),
    `other` String,
    `through` DateTime64(6, 'UTC'),
    `months` UInt32,
    `event_count` UInt64,
    `differing` Array(String)
)
ENGINE = MergeTree
ORDER BY compared_at
TTL toDateTime(compared_at) + toIntervalDay(90)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE storing_progress
(
    `recorded_at` DateTime64(3, 'UTC'),
    `through` DateTime64(3, 'UTC'),
    `newest_block` UInt64
)
ENGINE = MergeTree
ORDER BY recorded_at
TTL toDateTime(recorded_at) + toIntervalDay(8)
SETTINGS index_granularity = 8192;

CREATE TABLE stream_order
(
    `record` UInt64,
    `number` UInt64,
    `partitions` Array(UInt32),
    `firsts` Array(UInt64),
    `lasts` Array(UInt64),
    `through` DateTime64(3, 'UTC'),
    `started_at` DateTime('UTC'),
    `recorded_at` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(recorded_at)
ORDER BY record
TTL toDateTime(recorded_at) + toIntervalDay(8) WHERE record > 0
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE topic_partitions
(
    `topic` String,
    `partitions` UInt32,
    `recorded_at` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree
ORDER BY (topic, partitions)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE user_deletions
(
    `workspace_id` LowCardinality(String),
    `user_id` String,
    `version` SimpleAggregateFunction(max, UInt64),
    `user_hash` UInt64 MATERIALIZED cityHash64(user_id)
)
ENGINE = AggregatingMergeTree
ORDER BY (workspace_id, user_id)
SETTINGS index_granularity = 128, min_compress_block_size = 2048, max_compress_block_size = 4096, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864;

CREATE TABLE user_sightings
(
    `workspace_id` LowCardinality(String),
    `user_id` String,
    `version` UInt64,
    `group_id` String
)
ENGINE = ReplacingMergeTree
PRIMARY KEY (workspace_id, user_id, version)
ORDER BY (workspace_id, user_id, version, group_id)
SETTINGS index_granularity = 128, min_compress_block_size = 2048, max_compress_block_size = 4096, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864;

CREATE TABLE webhook_deliveries
(
    `webhook_id` UUID,
    `slot` UInt8,
    `at` DateTime64(3, 'UTC'),
    `message_id` String,
    `type` LowCardinality(String),
    `events` UInt32,
    `attempt` UInt32,
    `status` UInt16,
    `duration_ms` UInt32,
    `error` String
)
ENGINE = ReplacingMergeTree(at)
ORDER BY (webhook_id, slot)
TTL toDateTime(at) + toIntervalDay(30)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE webhook_leases
(
    `webhook_id` UUID,
    `epoch` UInt32,
    `holder` String,
    `lease_ms` UInt32,
    `recorded_at` DateTime64(6, 'UTC') DEFAULT now64(6),
    `expires_at` DateTime64(3, 'UTC') DEFAULT now64(3) + toIntervalMillisecond(lease_ms)
)
ENGINE = ReplacingMergeTree(recorded_at)
ORDER BY (webhook_id, epoch, holder)
TTL toDateTime(recorded_at) + toIntervalDay(1)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE webhook_positions
(
    `webhook_id` UUID,
    `epoch` UInt32,
    `sequence` UInt32,
    `position` String,
    `sending_to` String,
    `attempts` UInt32,
    `failing_since` DateTime64(3, 'UTC'),
    `log_lines` UInt64,
    `version` UInt64 DEFAULT bitShiftLeft(toUInt64(epoch), 32) + sequence,
    `stored_at` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY webhook_id
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE webhook_states
(
    `webhook_id` UUID,
    `state` LowCardinality(String),
    `reason` String,
    `since` DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(since)
ORDER BY webhook_id
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192, non_replicated_deduplication_window = 10000;

CREATE TABLE webhooks
(
    `workspace_id` String,
    `id` UUID,
    `kind` LowCardinality(String) DEFAULT 'events',
    `url` String,
    `filter` String,
    `batched` Bool,
    `content` String,
    `secret` String,
    `previous_secret` String,
    `previous_secret_until` DateTime64(3, 'UTC'),
    `created_at` DateTime64(3, 'UTC'),
    `is_deleted` Bool,
    `changed_at` DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(changed_at)
ORDER BY (workspace_id, id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192, non_replicated_deduplication_window = 10000;

CREATE TABLE writer_epochs
(
    `group_id` String,
    `incarnation` UInt32,
    `generation` UInt32,
    `recorded_at` DateTime64(3, 'UTC') DEFAULT now64(3),
    `leader_id` String
)
ENGINE = ReplacingMergeTree
PRIMARY KEY (group_id, incarnation, generation)
ORDER BY (group_id, incarnation, generation, leader_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE writer_groups
(
    `group_id` String,
    `recorded_at` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree
ORDER BY group_id
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE writer_halts
(
    `group_id` String,
    `topic` String,
    `partition` UInt32,
    `reason` LowCardinality(String),
    `detail` String,
    `first_offset` Nullable(Int64),
    `last_offset` Nullable(Int64),
    `halted_at` DateTime64(3, 'UTC'),
    `resumed_at` Nullable(DateTime64(3, 'UTC')),
    `resume_offset` Nullable(Int64),
    `state_at` DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(state_at)
ORDER BY (group_id, topic, partition)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE writer_positions
(
    `group_id` String,
    `topic` String,
    `partition` UInt32,
    `next_offset` Int64,
    `fingerprint` String,
    `leader_epoch` Int32,
    `incarnation` UInt32,
    `generation` UInt32,
    `stored_at` DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(stored_at)
ORDER BY (group_id, topic, partition)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;

CREATE TABLE writer_replicas
(
    `replica` String,
    `is_gone` Bool,
    `changed_at` DateTime64(6, 'UTC')
)
ENGINE = ReplacingMergeTree(changed_at)
ORDER BY replica
TTL toDateTime(changed_at) + toIntervalDay(30) WHERE is_gone
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864, index_granularity = 8192;
