-- Of the inserts that replace one row, ClickHouse stores the first alone: they have the same token. It remembers the tokens of the
-- last inserts of each table (docs/design/decisions/0080-changes-at-once.md).
ALTER TABLE webhooks MODIFY SETTING non_replicated_deduplication_window = 10000
PARALLEL WITH
ALTER TABLE webhook_states MODIFY SETTING non_replicated_deduplication_window = 10000
PARALLEL WITH
ALTER TABLE console_documents MODIFY SETTING non_replicated_deduplication_window = 10000
