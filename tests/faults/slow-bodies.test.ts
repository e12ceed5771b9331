import { inject, test } from 'vitest';
import { expectToGiveUp } from '../kit/slow-bodies.ts';

test('200 bodies of one key that are sent a byte at a time do not keep another workspace out, and are given up', async () => {
  await expectToGiveUp({
    kafkaBrokers: inject('kafkaBrokers'),
    name: 'slow',
    header: 'Content-Length: 4000000',
    piece: ' ',
  });
});
