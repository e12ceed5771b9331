import { ROW_FORMAT } from '@sluice/shared/rows';
import { mergeKeyOf } from '@sluice/shared/rows/merged-user';
import type { KafkaMessage } from 'kafkajs';
import { expect, test } from 'vitest';
import { rowsOf } from './log-rows.ts';

/** Returns the row of a change as an audit sees it. */
function rowOfChange(fields: object) {
  const row = { workspace_id: 'w', kind: 'visitor', operation: 'say', version: 1_772_323_200_000_000, ...fields };
  const headers = { kind: Buffer.from('changes'), format: Buffer.from(ROW_FORMAT) };
  const [found] = rowsOf({
    headers,
    value: Buffer.from(JSON.stringify(row)),
    timestamp: '0',
  } as unknown as KafkaMessage);
  return found;
}

test('deletions of both users hide what says whom one of them became, and what takes that back', () => {
  const id = mergeKeyOf('old');
  expect(rowOfChange({ id, user_id: 'jane' })).toMatchObject({ person: 'jane', merged: 'old' });
  expect(rowOfChange({ id })).toMatchObject({ person: 'old', merged: 'old' });
  expect(rowOfChange({ id: 'phone', user_id: 'jane' })).toMatchObject({ person: 'jane' });
  expect(rowOfChange({ id: 'phone', user_id: 'jane' })).not.toHaveProperty('merged');
});
