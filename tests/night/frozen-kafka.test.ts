import { inject, test } from 'vitest';
import { ownKafka } from '../kit/engines.ts';
import { stopWhileFrozen } from '../kit/frozen-kafka.ts';

/** Longer than a send, and then the first request of a new connection, may take. */
const FROZEN_MS = 30_000;

test('services stop while Kafka has been frozen for long, and events are accepted again once it responds', async () => {
  await using kafka = await ownKafka();
  await stopWhileFrozen({ kafka, clickhouseUrl: inject('clickhouseUrl'), name: 'longfrozen', frozenMs: FROZEN_MS });
});

test('services stop while Kafka is frozen, and events are accepted again once it responds', async () => {
  await using kafka = await ownKafka();
  await stopWhileFrozen({ kafka, clickhouseUrl: inject('clickhouseUrl'), name: 'shortfrozen', frozenMs: 0 });
});
