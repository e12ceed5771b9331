import type { Settings } from './settings.ts';

/** The block that `npm start` prints when everything is ready: addresses, the key, the console, the docs, two commands to paste. */
export function welcome({ ports, dataDir, externalKafka, externalClickHouse }: Settings, key: string): string {
  const ingest = `http://127.0.0.1:${ports.ingest}`;
  const query = `http://127.0.0.1:${ports.query}`;
  const clickhouse = externalClickHouse
    ? 'from CLICKHOUSE_URL'
    : `http://127.0.0.1:${ports.clickhouse} (user sluice, password in ${dataDir}/clickhouse-password)`;
  const trench = ports.trench === undefined ? '' : `\n  trench-api  http://127.0.0.1:${ports.trench}`;
  const submission = {
    foreignUserGroupId: 'acme',
    foreignUserId: 'jane',
    events: [{ event: 'signed_up', properties: { plan: 'pro' } }],
  };
  return `
Sluice is ready.

  ingest-api  ${ingest}
  query-api   ${query}${trench}
  console     ${query}/console/
  writer      http://127.0.0.1:${ports.writer}/readyz
  Kafka       ${externalKafka ? 'from KAFKA_BROKERS' : `127.0.0.1:${ports.kafka}`}
  ClickHouse  ${clickhouse}
  key         ${key}
  docs        ${ingest}/docs (submitting events)
              ${query}/docs (querying them)

Submit an event:

  curl -X POST ${ingest}/v1/public/userGroups -H ${quote(`Authorization: Bearer ${key}`)} -H 'Content-Type: application/json' -d ${quote(JSON.stringify(submission))}

Query it:

  curl '${query}/events?userId=jane&limit=5'

Ctrl-C stops everything; the data stays in ${dataDir}.
`;
}

/** Quotes a text for a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
