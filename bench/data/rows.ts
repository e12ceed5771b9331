import { createHash, randomUUIDv7 } from 'node:crypto';
import type { RowBatch, RowMessage } from '@sluice/storage/protocol/row-batch';
import type { BenchDatabase } from '../processes/database.ts';

/** About as many as ingest-api puts into a message of 256 KiB. */
export const ROWS_PER_MESSAGE = 500;

const WORKSPACES = ['acme', 'globex', 'initech'] as const;
const EVENTS = ['page_viewed', 'member_invited', 'report_opened', 'file_uploaded', 'search', 'signed_in'] as const;

const TITLES = ['Quarterly planning', 'Release checklist', 'Onboarding', 'Invoices', 'Roadmap', 'Hiring'] as const;

/** A few users and organizations have most of the events. */
const USERS = 200_000;
const ORGANIZATIONS = 5_000;

/**
 * New events as the writer reads them from Kafka, some 700 bytes each, 300 of them properties.
 *
 * @param timestamp returns the time of the next event, in milliseconds since 1970
 */
export function randomBatch(rows: number, timestamp: () => number): RowBatch {
  return batchOf(rows, () => randomRow(timestamp()));
}

/** A batch of rows as the writer reads them from Kafka. */
export function batchOf(rows: number, nextRow: () => string): RowBatch {
  const events: RowMessage[] = [];
  for (let first = 0; first < rows; first += ROWS_PER_MESSAGE) {
    let text = '';
    for (let row = first; row < Math.min(first + ROWS_PER_MESSAGE, rows); row += 1) text += `${nextRow()}\n`;
    const index = events.length;
    events.push({
      ...{ kind: 'events', topic: 'bench.events', partition: index % 6, offset: String(index) },
      value: Buffer.from(text),
    });
  }
  return { events, changes: [], deadLetters: [] };
}

function randomRow(timestamp: number): string {
  const user = skewed(USERS);
  return (
    `{"workspace_id":"${WORKSPACES[user % 3]}","timestamp":${timestamp},"uuid":"${randomUUIDv7()}",` +
    `"event":"${EVENTS[skewed(EVENTS.length)]}","user_id":"user-${user}","group_id":"org-${skewed(ORGANIZATIONS)}",` +
    `"properties":{"url":"https://app.example.com/teams/${user % 500}/projects/${skewed(20_000)}?tab=activity&ref=email",` +
    `"title":"${TITLES[skewed(TITLES.length)]} · Team ${user % 500}","sessionId":"${sessionId(user)}","plan":"business",` +
    `"seats":${skewed(500)},"trial":false,"amount":${skewed(1e6) / 100},"durationMs":${skewed(30_000)},` +
    `"device":{"os":"Linux","browser":"Firefox ${130 + skewed(12)}.0","width":1920},"tags":["web","team-${user % 9}"]},` +
    `"context":{"locale":"en-GB","library":{"name":"sluice-js","version":"1.4.2"}},"received_at":${Date.now() * 1_000}}`
  );
}

/** A session is an hour of a user. */
function sessionId(user: number): string {
  return createHash('md5')
    .update(`${user} ${Math.floor(Date.now() / 3_600_000)}`)
    .digest('hex');
}

function skewed(count: number): number {
  return Math.floor(count * Math.random() ** 3);
}

/** Whose events are. A few users and organizations have most of them. */
export interface Owners {
  readonly users: number;
  readonly organizations: number;
  readonly workspaces: readonly string[];
}

/** Stores events like those of `randomBatch`, at random times of the last days, and merges them. */
export async function fillEvents(
  { client }: BenchDatabase,
  rows: number,
  days: number,
  owners: Owners = { users: USERS, organizations: ORGANIZATIONS, workspaces: WORKSPACES },
): Promise<void> {
  await client.command({ query: FILL_EVENTS, query_params: { ...owners, rows, days, until: Date.now() } });
  await client.command({ query: 'OPTIMIZE TABLE events' });
}

const FILL_EVENTS = `
INSERT INTO events (workspace_id, timestamp, uuid, event, user_id, group_id, properties, context, received_at)
WITH
  toUInt32({users:UInt32} * pow(randCanonical(number), 3)) AS user,
  fromUnixTimestamp64Milli({until:Int64} - toInt64(randCanonical(number + 1) * {days:UInt32} * 86400000), 'UTC') AS at
SELECT
  arrayElement({workspaces:Array(String)}, user % length({workspaces:Array(String)}) + 1),
  at,
  generateUUIDv7(),
  ['page_viewed', 'member_invited', 'report_opened', 'file_uploaded', 'search', 'signed_in'][
    toUInt32(6 * pow(randCanonical(number + 2), 3)) + 1
  ],
  concat('user-', toString(user)),
  concat('org-', toString(toUInt32({organizations:UInt32} * pow(randCanonical(number + 3), 3)))),
  concat(
    '{"url":"https://app.example.com/teams/', toString(user % 500), '/projects/',
    toString(toUInt32(20000 * pow(randCanonical(number + 4), 3))), '?tab=activity&ref=email","title":"',
    ['Quarterly planning', 'Release checklist', 'Onboarding', 'Invoices', 'Roadmap', 'Hiring'][user % 6 + 1],
    ' · Team ', toString(user % 500), '","sessionId":"', lower(hex(MD5(concat(toString(user), ' ', toString(toStartOfHour(at)))))),
    '","plan":"business","seats":', toString(toUInt32(500 * pow(randCanonical(number + 5), 3))),
    ',"trial":false,"amount":', toString(toUInt32(1000000 * pow(randCanonical(number + 6), 3)) / 100),
    ',"durationMs":', toString(toUInt32(30000 * pow(randCanonical(number + 7), 3))),
    ',"device":{"os":"Linux","browser":"Firefox ', toString(130 + user % 12), '.0","width":1920},"tags":["web","team-',
    toString(user % 9), '"]}'
  ),
  '{"locale":"en-GB","library":{"name":"sluice-js","version":"1.4.2"}}',
  at
FROM numbers({rows:UInt64})
`;
