import type { Statement } from '../clickhouse/statement.ts';
import { deletedVersionOf, lastDeletionsOf, USERS_OF_EVENTS } from './last-deletions.ts';
import { STORED_EVENT_COLUMNS } from './staging-tables.ts';

/**
 * Stores the staged events, without those that were accepted before their user was deleted. find-repeats and drop-repeats
 * have left those that are not stored yet, so a batch may be repeated whatever became of the last attempt.
 * Fails when a newer epoch is recorded, because its writers own the partitions now. They end an insert that began before
 * they recorded their epoch. So nobody else stores these rows between the look-up and the end of this insert.
 */
export const STORE_EVENTS: Statement = {
  name: 'store-events',
  sql: `
INSERT INTO events (${STORED_EVENT_COLUMNS})
WITH
  -- Read here and not before: this insert must know every deletion that may be erased before the insert ends.
  ${lastDeletionsOf(USERS_OF_EVENTS)} AS deletions
SELECT ${STORED_EVENT_COLUMNS}
FROM staged_events
WHERE throwIf(
    (SELECT max((incarnation, generation)) FROM writer_epochs WHERE group_id = {group:String})
      > ({incarnation:UInt32}, {generation:UInt32}),
    'a newer epoch owns the partitions'
  ) = 0
  AND toUnixTimestamp64Micro(received_at) > ${deletedVersionOf(USERS_OF_EVENTS)}`,
};
