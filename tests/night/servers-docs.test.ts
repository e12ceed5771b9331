import { test } from 'vitest';
import { followServerDocument } from '../kit/servers-docs.ts';

test('the commands of docs/operate/servers.md add a mirror, replace a lost server, and split one', async () => {
  await followServerDocument('stories', { isWhole: true });
});
