import { filling, storingInput, type TemporaryTable } from '@sluice/storage/clickhouse/statement';
import { readStatements, type Statement } from '@sluice/storage/clickhouse/statements';
import { STAGING_STATEMENTS, stagedTable } from './staging-tables.ts';
import { STORE_STATEMENTS } from './store-statements.ts';

const OF_BATCH = readStatements(new URL('./batch.sql', import.meta.url), [
  'end-own-statements',
  'record-ended-batch',
  'inspect-events',
  'inspect-changes',
  'find-deletions',
  'count-deleted-rows',
  'drop-deleted-events',
  'drop-deleted-changes',
  'find-repeats',
  'find-stamped-repeats',
  'find-cold-times',
  'drop-hidden-originals',
  'drop-stored-repeats',
  'read-possible-repeats',
  'stage-repeats',
  'load-repeats',
  'drop-repeats',
  'store-dead-letters',
]);

/** The deletions of users and visitors in a batch. */
const DELETIONS: TemporaryTable = {
  name: 'deletions',
  columns: { workspace_id: 'String', user_id: 'String', deleted_version: 'UInt64' },
};

/** The stored events that staged ones may repeat. */
const ORIGINALS: TemporaryTable = {
  name: 'originals',
  columns: {
    ...{ workspace_id: 'String', timestamp: "DateTime64(3, 'UTC')", uuid: 'UUID' },
    ...{ person: 'String', received_at: "DateTime64(6, 'UTC')" },
  },
};

/** The places of the staged events that are repeats. */
const REPEATS: TemporaryTable = { name: 'repeats', columns: { place: 'UInt64' } };

const STAGED_EVENTS = stagedTable('events');

const DEAD_LETTER_FIELDS = {
  ...{ id: 'String', kind: 'String', format: 'String', topic: 'String', partition: 'UInt32', offset: 'Int64' },
  ...{ line: 'UInt32', reason: 'String', row: 'String' },
};

/** Those that fill temporary tables, or drop rows of them. */
const FILLING = {
  'find-deletions': filling(OF_BATCH['find-deletions'], DELETIONS),
  'drop-deleted-events': filling(OF_BATCH['drop-deleted-events'], STAGED_EVENTS),
  'drop-deleted-changes': filling(OF_BATCH['drop-deleted-changes'], stagedTable('changes')),
  'find-repeats': filling(OF_BATCH['find-repeats'], ORIGINALS),
  'find-stamped-repeats': filling(OF_BATCH['find-stamped-repeats'], ORIGINALS),
  'drop-hidden-originals': filling(OF_BATCH['drop-hidden-originals'], ORIGINALS),
  'drop-stored-repeats': filling(OF_BATCH['drop-stored-repeats'], STAGED_EVENTS),
  'stage-repeats': { ...OF_BATCH['stage-repeats'], step: { does: 'create', table: REPEATS } },
  'load-repeats': {
    ...OF_BATCH['load-repeats'],
    step: {
      does: 'load',
      table: REPEATS,
      rows: { name: 'sent_rows', fields: REPEATS.columns },
      select: 'SELECT place FROM sent_rows',
    },
  },
  'drop-repeats': filling(OF_BATCH['drop-repeats'], STAGED_EVENTS),
} as const satisfies Readonly<Record<string, Statement>>;

/** The statements of a batch by their names, except those that number rows. */
export const STATEMENTS = {
  ...STAGING_STATEMENTS,
  ...OF_BATCH,
  ...FILLING,
  'store-dead-letters': storingInput(OF_BATCH['store-dead-letters'], DEAD_LETTER_FIELDS),
  ...readStatements(new URL('./entities.sql', import.meta.url), [
    'store-seen-in-deleted-events',
    'store-identity-deletions',
    'store-deletions',
    'store-pending-deletions',
    'store-links',
    'store-sightings',
  ]),
  ...STORE_STATEMENTS,
} as const;
