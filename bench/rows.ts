import { randomUUIDv7 } from 'node:crypto';
import type { RowBatch, RowMessage } from '../services/writer/src/batches/row-batch.ts';

/** About as many as ingest-api packs into a message of 256 KiB. */
export const ROWS_PER_MESSAGE = 500;

const WORKSPACES = ['acme', 'globex', 'initech'] as const;
const EVENTS = ['page_viewed', 'member_invited', 'report_opened', 'file_uploaded', 'search', 'signed_in'] as const;

/** Most events are of few users and organizations. */
const USERS = 200_000;
const ORGANIZATIONS = 5_000;

/**
 * Events as the writer gets them from Kafka, some 400 bytes each, none of them sent before.
 *
 * @param timestamp gives when the next event happened, in milliseconds
 */
export function randomBatch(rows: number, timestamp: () => number): RowBatch {
  return batchOf(rows, () => randomRow(timestamp()));
}

/** So many rows as the writer gets them from Kafka. */
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
  return { events, changes: [], unreadable: [] };
}

function randomRow(timestamp: number): string {
  const user = skewed(USERS);
  return (
    `{"workspace_id":"${WORKSPACES[user % 3]}","timestamp":${timestamp},"uuid":"${randomUUIDv7()}",` +
    `"event":"${EVENTS[skewed(EVENTS.length)]}","user_id":"user-${user}","group_id":"org-${skewed(ORGANIZATIONS)}",` +
    `"properties":{"plan":"business","seats":${skewed(500)},"trial":false,"path":"/teams/${skewed(10_000)}/members",` +
    `"source":"invitation by a colleague","tags":["web","team"]},` +
    `"context":{"locale":"en-GB","library":{"name":"sluice-js","version":"1.4.2"}},"received_at":${Date.now() * 1_000}}`
  );
}

function skewed(count: number): number {
  return Math.floor(count * Math.random() ** 3);
}

/** Stores events like those of `randomBatch`, at any time of the days before. */
export const FILL_EVENTS = `
INSERT INTO events (workspace_id, timestamp, uuid, event, user_id, group_id, properties, context, received_at)
WITH
  toUInt32(200000 * pow(randCanonical(number), 3)) AS user,
  fromUnixTimestamp64Milli({until:Int64} - toInt64(randCanonical(number + 1) * {days:UInt32} * 86400000), 'UTC') AS at
SELECT
  ['acme', 'globex', 'initech'][user % 3 + 1],
  at,
  generateUUIDv7(),
  ['page_viewed', 'member_invited', 'report_opened', 'file_uploaded', 'search', 'signed_in'][
    toUInt32(6 * pow(randCanonical(number + 2), 3)) + 1
  ],
  concat('user-', toString(user)),
  concat('org-', toString(toUInt32(5000 * pow(randCanonical(number + 3), 3)))),
  concat(
    '{"plan":"business","seats":', toString(toUInt32(500 * pow(randCanonical(number + 4), 3))),
    ',"trial":false,"path":"/teams/', toString(toUInt32(10000 * pow(randCanonical(number + 5), 3))),
    '/members","source":"invitation by a colleague","tags":["web","team"]}'
  ),
  '{"locale":"en-GB","library":{"name":"sluice-js","version":"1.4.2"}}',
  at
FROM numbers({rows:UInt64})
`;
