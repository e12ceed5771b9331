import { test } from 'vitest';
import { followServerDocument } from '../kit/servers-docs.ts';

test('the commands of docs/operate/servers.md add a mirror', async () => {
  await followServerDocument('mirrored', { isWhole: false });
});
