import fc from '@sluice/shared/testing/fast-check';
import { v5 } from 'uuid';
import { expect, test } from 'vitest';
import { MESSAGE_ID_NAMESPACE, messageUuid } from './message-uuid.ts';

test('the uuid is the UUIDv5 of workspace and messageId', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary', maxLength: 512 }), (workspace, id) => {
      expect(messageUuid(workspace, id)).toBe(v5(`${workspace}\0${id}`, MESSAGE_ID_NAMESPACE));
    }),
  );
});

test('a long messageId is hashed to its end, and leaves nothing to the next one', () => {
  for (const length of [1, 675, 676, 2_000, 1]) {
    const id = '€'.repeat(length);
    expect(messageUuid('w', id)).toBe(v5(`w\0${id}`, MESSAGE_ID_NAMESPACE));
  }
});

test('the uuid never changes', () => {
  expect(messageUuid('w', 'node-next-1772366400000-1')).toBe(v5('w\0node-next-1772366400000-1', MESSAGE_ID_NAMESPACE));
});
