import { inject, test } from 'vitest';
import { expectToGiveUp } from '../kit/slow-bodies.ts';

const kafkaBrokers = inject('kafkaBrokers');

test('200 bodies of one key that are announced and never sent do not keep another workspace out, and are given up', async () => {
  await expectToGiveUp({ kafkaBrokers, name: 'neversent', header: 'Content-Length: 4000000' });
});

test('200 bodies of one key that are sent in chunks of a byte do not keep another workspace out, and are given up', async () => {
  await expectToGiveUp({ kafkaBrokers, name: 'chunks', header: 'Transfer-Encoding: chunked', piece: '1\r\n \r\n' });
});
