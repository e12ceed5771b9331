import { inject, test } from 'vitest';
import { surviveOutage } from '../kit/outage.ts';

/** Longer than every timeout of the writer. The longest is a minute: ClickHouse's sessions, and Kafka's rebalances. */
const OUTAGE_MS = 80_000;

test('ClickHouse is away for longer than any timeout: nothing is refused, the writer waits, everything is stored once', async () => {
  const end = performance.now() + OUTAGE_MS;
  await surviveOutage({
    kafkaBrokers: inject('kafkaBrokers'),
    name: 'longoutage',
    isOver: async () => performance.now() > end,
  });
});
