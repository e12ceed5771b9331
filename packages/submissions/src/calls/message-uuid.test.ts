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

test('the uuid never changes', () => {
  expect(messageUuid('w', 'node-next-1772366400000-1')).toBe(v5('w\0node-next-1772366400000-1', MESSAGE_ID_NAMESPACE));
});
