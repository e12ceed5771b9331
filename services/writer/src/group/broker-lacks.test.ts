import { createLogger } from '@sluice/shared/base/log';
import type { KafkaMessage } from 'kafkajs';
import { expect, test } from 'vitest';
import { BrokerLacks } from './broker-lacks.ts';

const sound = { timestamp: '1700000000000', batchContext: { partitionLeaderEpoch: 0 } };
const batchOf = (message: object) => ({ messages: [message as KafkaMessage] });

test('what a broker lacks is said once, and what a whole one has is no reason', () => {
  const lines: string[] = [];
  const lacks = new BrokerLacks(
    createLogger('test', 'warn', { write: (line) => void lines.push(JSON.parse(line).msg) }),
  );
  lacks.look({ messages: [] });
  lacks.look(batchOf(sound));
  expect([lacks.warnings, lines]).toEqual([[], []]);
  for (const timestamp of ['0', '-1']) lacks.look(batchOf({ ...sound, timestamp }));
  expect(lacks.warnings).toEqual([expect.stringMatching(/^Kafka returns records without a time: /)]);
  for (const epoch of [-1, -1]) lacks.look(batchOf({ ...sound, batchContext: { partitionLeaderEpoch: epoch } }));
  lacks.add('metadata');
  lacks.add('metadata');
  expect(lacks.warnings).toEqual([
    expect.stringMatching(/without a time/),
    expect.stringMatching(/without the epoch of their leader/),
    expect.stringMatching(/does not keep the metadata of committed offsets/),
  ]);
  expect(lines).toEqual(lacks.warnings);
});
