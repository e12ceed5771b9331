import { randomUUIDv7 } from 'node:crypto';
import { changeRow } from './change-row.ts';
import type { OutgoingRow } from './partition-rows.ts';

/**
 * Creates the row that deletes a user or a visitor, who is named as `deleted-person.ts` says. Every partition of `events` gets a
 * copy, so that an event that follows it in its partition was accepted after it: an event that is sent again after its user was
 * deleted is then new, not a repeat.
 */
export function deletionRow(person: string, workspace: string, version: number): OutgoingRow {
  const row = changeRow('user', person, { workspace, version, idempotencyKey: undefined }, 'delete', randomUUIDv7());
  return { topic: 'events', kind: 'changes', hash: 'all', line: JSON.stringify(row) };
}
