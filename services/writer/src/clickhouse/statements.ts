import { readFileSync } from 'node:fs';
import { STAGING_STATEMENTS } from './staging-tables.ts';
import type { Statement } from './statement.ts';
import { STORE_EVENTS } from './store-events.ts';
import { STORE_PROPERTIES } from './store-properties.ts';
import { STORE_SEEN } from './store-seen.ts';

/** The SQL files. A step of `protocol/steps.ts` that runs one of them has the same name. */
const FILES = [
  // Whose the database is.
  'record-group',
  'read-groups',
  'record-identity',
  'record-server-name',
  'read-identity',
  // Taking partitions over.
  'newest-epoch',
  'record-epoch',
  'end-older-statements',
  // Storing a batch.
  'end-own-statements',
  'inspect-events',
  'inspect-changes',
  'find-deletions',
  'count-deleted-rows',
  'store-seen-in-deleted-events',
  'drop-deleted-events',
  'drop-deleted-changes',
  'store-deletions',
  'store-pending-deletions',
  'store-sightings',
  'find-repeats',
  'find-stamped-repeats',
  'drop-hidden-originals',
  'drop-stored-repeats',
  'read-possible-repeats',
  'stage-repeats',
  'load-repeats',
  'drop-repeats',
  'store-dead-letters',
  // Positions and halts of partitions.
  'read-partitions',
  'store-positions',
  'choose-position',
  'record-topic-partitions',
  'read-topic-partitions',
  'record-grown-topics',
  'forget-smaller-topics',
  'record-halt',
  'resume-partition',
  // Erasing deleted users.
  'find-due-erasures',
  'find-deleted-rows',
  'find-events-of-visitors',
  'find-removals',
  'end-failed-removals',
  'erase-events',
  'erase-events-of-visitors',
  'erase-properties',
  'erase-sightings',
  'find-mixed-users',
  'store-returned-users',
  'erase-entities',
  'erase-dead-letters',
  'forget-erased',
  // How far the server is.
  'read-newest-block',
  'record-progress',
  // What the metrics say.
  'read-server-state',
  'read-pending-erasures',
  'read-backup-age',
  'read-comparisons',
  // Retention, and erasing expired events.
  'record-retention',
  'read-retention',
  'find-expired-events',
  'find-expired-events-of-others',
  'erase-expired-events',
] as const;

/** All statements of the writer by their names, except those that number rows. */
export const STATEMENTS = {
  ...STAGING_STATEMENTS,
  'store-properties': STORE_PROPERTIES,
  ...STORE_SEEN,
  'store-events': STORE_EVENTS,
  ...(Object.fromEntries(
    FILES.map((name) => [name, { name, sql: readFileSync(new URL(`./sql/${name}.sql`, import.meta.url), 'utf8') }]),
  ) as Readonly<Record<(typeof FILES)[number], Statement>>),
} as const;
