import { inject, test } from 'vitest';
import { expectToBear, startHostileIngest } from '../kit/hostile-ingest.ts';

/** Every kind of body has been tried several times by then. */
const RESPONSES = 100;

test('all kinds of hostile bodies, over 64 connections: memory is bounded, and the process lives', async () => {
  await using ingest = await startHostileIngest(inject('kafkaBrokers'), 'morehostile');
  await expectToBear(ingest, 64, RESPONSES);
});
