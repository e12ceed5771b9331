import { inject, test } from 'vitest';
import { expectToSurvive } from '../kit/mirror-faults.ts';

test('of two ClickHouse servers one is killed, the other frozen: reads go on, and both end up equal', async () => {
  await expectToSurvive({
    kafkaBrokers: inject('kafkaBrokers'),
    name: 'mirrors',
    killed: ['a1'],
    frozen: ['a2'],
    withoutWriter: [],
    verified: ['a2'],
  });
});
