import { describe, inject, test } from 'vitest';
import { KAFKA_CONTRACTS } from './kafka-contracts.ts';
import { realKafka, simulatedKafka } from './kafka-engines.ts';

/** Each statement is tried on both: the simulator is worth as much as its servers behave like the real ones. */
const contracts = Object.entries(KAFKA_CONTRACTS);

describe('the simulated Kafka', () => {
  test.each(contracts)('%s', async (_, check) => {
    await using engine = simulatedKafka(1);
    await engine.run(() => check(engine));
  });
});

// Together, because most of them wait for time to pass.
describe.concurrent('Kafka', () => {
  test.each(contracts)('%s', async (_, check) => {
    await using engine = await realKafka(inject('kafkaBrokers'));
    await engine.run(() => check(engine));
  });
});
