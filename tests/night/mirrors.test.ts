import { inject, test } from 'vitest';
import { expectToSurvive } from '../kit/mirror-faults.ts';

test('each of two ClickHouse servers is killed, frozen, and loses its writer: reads go on, and both end up equal', async () => {
  const both = ['a1', 'a2'] as const;
  await expectToSurvive({
    kafkaBrokers: inject('kafkaBrokers'),
    name: 'bothmirrors',
    killed: both,
    frozen: both,
    withoutWriter: both,
    verified: both,
  });
});
