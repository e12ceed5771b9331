import { readStatements } from '@sluice/storage/clickhouse/statements';

/** The statements that erase deleted users and expired events, fill columns and move events, by their names. */
export const STATEMENTS = readStatements(new URL('./erasure.sql', import.meta.url), [
  'find-due-erasures',
  'find-deleted-rows',
  'find-events-of-visitors',
  'erase-events',
  'erase-events-of-visitors',
  'erase-properties',
  'erase-sightings',
  'find-mixed-users',
  'store-returned-users',
  'erase-entities',
  'erase-dead-letters',
  'forget-erased',
  'find-expired-events',
  'find-expired-events-of-others',
  'erase-expired-events',
  'read-declared-properties',
  'find-unfilled-columns',
  'read-events-policy',
  'find-moves',
  'find-misplaced-parts',
  'move-to-cold-volume',
  'move-back',
]);
