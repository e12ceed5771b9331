import { inject, test } from 'vitest';
import { ownKafka } from '../kit/engines.ts';
import { stopWhileFrozen } from '../kit/frozen-kafka.ts';

test('services stop while Kafka is frozen, and events are accepted again once it responds', async () => {
  await using kafka = await ownKafka();
  await stopWhileFrozen({ kafka, clickhouseUrl: inject('clickhouseUrl'), name: 'frozen', frozenMs: 0 });
});
