import { expect, inject, test } from 'vitest';
import { createTestClients } from '../testing/clients.ts';
import { checkPartitionCount, PartitionCountMismatch } from './partition-count.ts';

function config(partitions: number, prefix = 'counted.') {
  return { KAFKA_BROKERS: [], KAFKA_TOPIC_PREFIX: prefix, KAFKA_PARTITIONS: partitions, KAFKA_SSL: false };
}

test('the first writer records over how many partitions rows are spread, and a writer with another number is refused', async () => {
  const { client, close } = await createTestClients(inject('clickhouseUrl'));
  try {
    await checkPartitionCount(client, config(6));
    await checkPartitionCount(client, config(6));
    for (const other of [3, 48]) {
      const check = checkPartitionCount(client, config(other));
      await expect(check).rejects.toThrow(PartitionCountMismatch);
      await expect(check).rejects.toThrow(/counted\.\w+ were spread over 6 partitions, .* set it to 6/);
    }
    await checkPartitionCount(client, config(48, 'other.'));
    // As docs/operate/configuration.md says, once everything is stored.
    await client.command({ query: 'TRUNCATE TABLE topic_partitions' });
    await checkPartitionCount(client, config(48));
    await expect(checkPartitionCount(client, config(6))).rejects.toThrow(PartitionCountMismatch);
  } finally {
    await close();
  }
});

test('writers that start together with different numbers do not both store', async () => {
  const { client, close } = await createTestClients(inject('clickhouseUrl'));
  try {
    const outcomes = await Promise.allSettled(
      [6, 48].map((partitions) => checkPartitionCount(client, config(partitions))),
    );
    const later = await Promise.allSettled(
      [6, 48].map((partitions) => checkPartitionCount(client, config(partitions))),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled').length).toBeLessThan(2);
    expect(later.filter(({ status }) => status === 'fulfilled').length).toBeLessThan(2);
  } finally {
    await close();
  }
});
