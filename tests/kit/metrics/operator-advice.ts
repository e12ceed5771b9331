/** What an operator does about each metric. `npm run metrics -- --write` writes it into docs/operate/metrics.md. */
export const OPERATOR_ADVICE: Readonly<Record<string, string>> = {
  // HTTP.
  http_request_duration_seconds:
    'Watch the share of status 5xx and the 99th percentile by `route`. Slow submissions point to Kafka, slow queries to ClickHouse.',
  sluice_http_refused_requests_total:
    'Alert on codes of `503` and on `internal`; the log of the service has the cause under the request id. Other codes are mistakes of clients: tell them.',
  sluice_http_rate_limited_requests_total:
    'Raise the rate of the key, or `RATE_LIMIT_DEFAULT`, if the traffic is wanted.',
  sluice_keys_file_age_seconds:
    'After a change of the keys, it must fall in every replica; where it does not, the new file has not arrived there.',
  sluice_keys_file_valid:
    'At 0, read the reason in the log and correct the file. A restart before that refuses every key.',

  // ingest-api.
  sluice_ingest_accepted_events_total:
    'When it stands still while requests come, nothing is accepted: look at the codes of the refused requests.',
  sluice_ingest_calls_total:
    'Compare the rejected calls of a client with it: [SluiceRejecting](alerts.md#sluicerejecting) does.',
  sluice_ingest_rejected_calls_total:
    'List the dead letters of kind `rejected`, and correct the sender: [SluiceRejecting](alerts.md#sluicerejecting) says how, by `reason`.',
  sluice_ingest_refused_links_total:
    'A client sends one user identifier for many people: [SluiceLinksRefused](alerts.md#sluicelinksrefused) says what to do.',
  sluice_ingest_ignored_recordings_total:
    'Recordings are off in what posthog-js reads. If many arrive, switch them off where that client is set up.',
  sluice_ingest_ignored_requests_total:
    'Clients send logs, push tokens or figures about themselves. If many arrive, switch these off in the clients.',
  sluice_ingest_lost_messages_total:
    'Alert on any: Kafka lost acknowledged messages. Check replication, `min.insync.replicas` and the disks of the brokers.',
  sluice_ingest_leaderless_partitions: 'Bring back the brokers of these partitions.',
  sluice_ingest_failing_partitions: 'The log names the error. Check the brokers, their disks and the network.',
  sluice_ingest_clock_ahead_seconds:
    'Synchronize the clock of this machine, or of the broker, before it reaches `sluice_ingest_clock_ahead_limit_seconds`.',
  sluice_ingest_clock_ahead_limit_seconds:
    'Compare the clock with it. It is [`CLOCK_SKEW_MS_MAX`](configuration.md#the-clock).',
  sluice_ingest_memory_budget_bytes: 'It is `PENDING_BYTES_MAX`. Raise that together with the memory of the container.',
  sluice_ingest_reserved_bytes:
    'Near the budget, requests get `503 overloaded`: add replicas, or find out why Kafka acknowledges slowly.',

  // writer.
  sluice_writer_stored_messages_total: 'When it stands still while the lag grows, look at the failures of batches.',
  sluice_writer_stored_bytes_total: 'Plan the capacity of ClickHouse by it.',
  sluice_writer_last_stored_timestamp_seconds:
    'When it grows old while messages wait, look at the failures of batches and at the log. Without traffic it grows old, too.',
  sluice_writer_stream_order_timestamp_seconds:
    'When it grows old, or no writer of a range of replicas has it, streams, webhooks and alerts stand still: the log of the writer that owns the first partition says why.',
  sluice_writer_batch_duration_seconds:
    'When it rises, ClickHouse is slow: look at its merges, its disk and the queries beside.',
  sluice_writer_batch_failures_total:
    "When it grows for minutes, the log has ClickHouse's error: no space, too many parts, a missing right, no connection.",
  sluice_writer_dead_letters_total:
    'List them with `npm run dead-letters -- list`, repair the cause and [replay](../design/guarantees.md#dead-letters) them.',
  sluice_writer_dead_letter_alarm:
    'At 1, more than single rows are wrong, so look for a cause that they share: a new producer, a changed table.',
  sluice_writer_dropped_rows_total:
    'Nothing: `user_deleted` are rows of users who were deleted after the rows were accepted.',
  sluice_writer_misplaced_messages_total:
    'Give every service the same [`KAFKA_PARTITIONS`](configuration.md#partitions).',
  sluice_writer_halted_partitions:
    'At 1, find out what Kafka has lost, and [resume](../design/guarantees.md#halted-partitions) the partition.',
  sluice_writer_lag_messages:
    'Watch how it falls after an outage. Scale by the lag in seconds: a message has any number of rows.',
  sluice_writer_lag_seconds:
    'When it grows, the writers do not keep up, or ClickHouse is away: look at failures and duration of batches, then add writers.',
  sluice_writer_retention_headroom_seconds:
    'Before it reaches 0, let the writers store again, or raise `retention.ms` of the topic. It does not know `retention.bytes`.',
  sluice_kafka_brokers: 'When it falls, bring the broker back. With one broker, a `202` rests on it alone.',
  sluice_topic_replicas:
    'Below 3 where there are several brokers, give the topic more: [SluiceTopicAtRisk](alerts.md#sluicetopicatrisk).',
  sluice_topic_min_insync_replicas:
    'Below 2, a `202` may rest on one broker: [SluiceTopicAtRisk](alerts.md#sluicetopicatrisk). Absent without the right `DescribeConfigs`.',
  sluice_clickhouse_disk_free_bytes:
    'Add space before it is used up: ClickHouse refuses inserts, and the rows wait in Kafka. Merges need free space as well.',
  sluice_clickhouse_disk_bytes: 'Compare the free space with it.',
  sluice_clickhouse_partition_parts:
    'Near its limit, merges do not keep up: look at the disk and at `system.merges`, and keep events of many months apart from the daily load.',
  sluice_clickhouse_partition_parts_limit: 'Compare the parts with it; from here on ClickHouse refuses inserts.',
  sluice_clickhouse_pending_mutations:
    'When it stays above 0 for hours, read `latest_fail_reason` in `system.mutations`. Erasures and migrations run as mutations.',
  sluice_erasure_pending_users: 'Watch that it falls after each round of erasures.',
  sluice_erasure_oldest_seconds:
    'Above `sluice_erasure_deadline_seconds`, an erasure is late: the log of the writer has the reason; look at the pending mutations.',
  sluice_erasure_failures_total:
    'When it keeps rising, nothing is erased, or nothing moves: the log of the writer has the reason; look at the pending mutations.',
  sluice_erasure_deadline_seconds: 'Compare the oldest erasure with it; it follows from `ERASURE_GATHER_MS`.',
  sluice_backup_age_seconds:
    'When it is above the time between two [backups](backup.md), the job that makes them fails: run `npm run backup` by hand.',
  sluice_audit_missing_events:
    'Above 0, accepted rows are lost or not found: [SluiceAuditDifferences](alerts.md#sluiceauditdifferences) says what to do.',
  sluice_audit_invented_events:
    'Above 0, rows are stored that nobody submitted: [SluiceAuditDifferences](alerts.md#sluiceauditdifferences) says what to do.',
  sluice_audit_duplicate_events:
    'Above 0, events are counted more than once: [SluiceAuditDifferences](alerts.md#sluiceauditdifferences) says what to do.',
  sluice_audit_balanced_through_timestamp_seconds:
    'When it grows old, the job that [audits](audit.md) fails, or audits find differences: run `npm run audit` by hand.',
  sluice_servers_compared_timestamp_seconds:
    'When it grows old, the job that [compares](servers-commands.md#compare) the servers fails: run `npm run servers -- compare` by hand.',
  sluice_servers_differ:
    'At 1, compare them by hand: it names the rows. [SluiceServersDiffer](alerts.md#sluiceserversdiffer) says what to do.',

  // query-api.
  sluice_query_given_up_servers_total:
    'When it rises again and again, the server is too busy or the way to it is bad: look at its log and at its load.',
  sluice_query_server_readable:
    'At 0, the log of query-api has the reason (`a ClickHouse server cannot be read`), and [SluiceServerAway](alerts.md#sluiceserveraway) what to do.',
  sluice_query_server_behind_seconds:
    'Some seconds are usual. When it grows, the writers of the server do not keep up, or do not run: [SluiceServerBehind](alerts.md#sluiceserverbehind).',
  sluice_query_server_read_only_tables:
    'Above 0, nothing can be stored there: [SluiceReplicaReadOnly](alerts.md#sluicereplicareadonly).',
  sluice_query_server_replication_queue:
    'Some are usual. When it grows for long, the replica does not keep up: look at its disk, its network and `system.replication_queue`.',
  sluice_query_server_chosen:
    'When it moves often, the servers take turns at being behind or away: look at the two metrics above.',
  sluice_servers_file_age_seconds:
    'After a change of the file of servers, it must fall in every replica; where it does not, the new file has not arrived there.',
  sluice_servers_file_valid:
    'At 0, read the reason in the log and correct the file ([SluiceServersFileInvalid](alerts.md#sluiceserversfileinvalid)). A query-api that starts before that ends at once.',
  sluice_queries:
    'Where queries wait for long, raise the connections of their pool, or give ClickHouse more processors.',
  sluice_queries_outliving:
    'Above 0 for minutes: the log names the workspace and the id of each; [statements that do not end](secure.md#statements-that-do-not-end) says what to do.',
  sluice_query_duration_seconds:
    'Watch the outcomes: `too_expensive` asks for narrower queries or higher limits, `unavailable` for ClickHouse.',
  sluice_query_wait_seconds:
    'Where it grows, the [slots](configuration.md#query-slots) of a pool are too few, or one workspace asks too much.',
  sluice_query_memory_budget_bytes:
    'It is [`QUERY_PENDING_BYTES_MAX`](configuration.md#memory-of-query-api). Raise that together with the memory of the container.',
  sluice_query_reserved_bytes: 'Near the budget, requests get `503 overloaded`: add replicas or memory.',
  sluice_stream_listeners: 'Compare it with `STREAM_LISTENERS_MAX`.',
  sluice_stream_events_total: 'Nothing; it tells how much streams cost.',
  sluice_stream_ended_total:
    'Look into `failed` and `stalled` when they grow: queries fail, or clients read too slowly.',
  sluice_webhook_events_total: 'Nothing; it tells how much webhooks cost.',
  sluice_webhook_attempts_total:
    'Look into `failed` when it grows: `GET /webhooks/ID/deliveries` has the errors of a receiver.',
  sluice_webhook_pauses_total:
    'Tell the owner of the webhook, which the log names: its events wait until it is resumed.',
  sluice_webhooks_paused:
    'Above 0, [see what the reason asks for](alerts.md#sluicewebhookpaused). Every instance that delivers shows all of them.',
  sluice_webhooks_held:
    'Compare the sum of all instances with the active webhooks: none is left out for longer than a lease.',
  sluice_webhook_lag_seconds:
    'Where it grows, receivers fail or are slow; with many webhooks, add instances of query-api.',
  sluice_alert_evaluations_total:
    'Look into `late` when it grows: the pipeline is behind, or no writer records how far it is. `failed`: as below.',
  sluice_alerts_failing:
    'Above 0 for long, [see what the reason asks for](alerts.md#sluicealertsfailing): the view may be deleted or too expensive.',
  sluice_stream_moves_total: 'Where it grows, a server is away or lags: its log and the lag of its writers say why.',
};
