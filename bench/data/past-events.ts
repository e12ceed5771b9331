import { randomUUID } from 'node:crypto';
import { messageHeaders } from '@sluice/shared/rows';
import { eventHash } from '@sluice/shared/rows/row-hashes';
import { kafkaClient } from '../../tests/kit/kafka-client.ts';

const HOUR_MS = 3_600_000;

/** How many are sent at once: a request to a partition has a limit of its bytes. */
const SENT = 5_000;

export interface PastEvents {
  readonly kafkaBrokers: readonly string[];
  readonly topic: string;
  /** How many partitions the topic has. */
  readonly partitions: number;
  readonly events: number;
}

/** Sends events of 400 bytes to Kafka as ingest-api does, received three hours ago. Returns one of them, and its partition. */
export async function producePastEvents({
  kafkaBrokers,
  topic,
  partitions,
  events,
}: PastEvents): Promise<{ readonly uuid: string; readonly partition: number }> {
  const producer = kafkaClient(kafkaBrokers).producer({ allowAutoTopicCreation: false });
  await producer.connect();
  const begin = Date.now() - 3 * HOUR_MS;
  let uuid = '';
  for (let from = 0; from < events; from += SENT) {
    const lines = new Map<number, string[]>();
    for (let index = from; index < Math.min(events, from + SENT); index += 1) {
      uuid = randomUUID();
      const timestamp = begin + Math.floor(index / 100);
      const row = {
        ...{ workspace_id: `w${index % 10}`, timestamp, uuid, event: 'e', user_id: `u${index % 50_000}` },
        properties: { path: `/pages/${index % 1_000}`, text: 'x'.repeat(200) },
        received_at: timestamp * 1_000 + (index % 1_000),
      };
      const partition = eventHash(uuid) % partitions;
      lines.set(partition, lines.get(partition) ?? []);
      lines.get(partition)?.push(JSON.stringify(row));
    }
    const messages = [...lines].flatMap(([partition, all]) =>
      Array.from({ length: Math.ceil(all.length / 500) }, (_, part) => ({
        partition,
        headers: { ...messageHeaders('events'), partitions: String(partitions) },
        value: `${all.slice(part * 500, part * 500 + 500).join('\n')}\n`,
      })),
    );
    await producer.send({ topic, acks: -1, messages });
  }
  await producer.disconnect();
  return { uuid, partition: eventHash(uuid) % partitions };
}
