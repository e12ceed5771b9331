import { readStatements } from '@sluice/storage/clickhouse/statements';
import { STAGING_STATEMENTS } from './staging-tables.ts';
import { STORE_STATEMENTS } from './store-statements.ts';

/** The statements of a batch by their names, except those that number rows. */
export const STATEMENTS = {
  ...STAGING_STATEMENTS,
  ...readStatements(new URL('./batch.sql', import.meta.url), [
    'end-own-statements',
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
  ]),
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
