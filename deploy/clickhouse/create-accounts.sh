#!/usr/bin/env bash
# Creates the accounts of accounts.sql, or gives them new passwords. The image of ClickHouse runs it whenever it starts
# (docker-compose.yml), before it listens for others.
set -eo pipefail

hash() {
  printf %s "$1" | sha256sum | cut -d ' ' -f 1
}

clickhouse-client --host 127.0.0.1 --user "$CLICKHOUSE_USER" --password "$CLICKHOUSE_PASSWORD" \
  --queries-file /etc/sluice/accounts.sql \
  --param_database "$CLICKHOUSE_DB" \
  --param_migrate_password_sha256 "$(hash "$MIGRATE_PASSWORD")" \
  --param_writer_password_sha256 "$(hash "$WRITER_PASSWORD")" \
  --param_query_password_sha256 "$(hash "$QUERY_PASSWORD")" \
  --param_webhooks_password_sha256 "$(hash "$WEBHOOKS_PASSWORD")"

# Where there are several servers, one is filled from another (docs/operate/servers-commands.md#copy).
if [ -n "$SEVERAL_SERVERS" ]; then
  clickhouse-client --host 127.0.0.1 --user "$CLICKHOUSE_USER" --password "$CLICKHOUSE_PASSWORD" \
    --query "GRANT READ ON REMOTE TO sluice_migrate"
fi
