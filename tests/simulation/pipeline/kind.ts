import { CLIENT_FAULTS, REQUESTS_OF_INGEST } from '../ingest/faults.ts';
import { ingestPlan } from '../ingest/kind.ts';
import { chooseFaults, chooseKinds, type Fault, type FaultTable, scheduleFault } from '../world/faults.ts';
import { Random } from '../world/random.ts';
import type { Kind } from '../world/run-schedule.ts';
import { chooseWriterKinds, REQUESTS, WRITER_FAULTS } from '../writer/faults.ts';
import { endFaults, recover, settle } from '../writer/kind.ts';
import { wrongDelivery } from './delivery.ts';
import { type PipelineOptions, PipelineWorld } from './world.ts';

/** After the last fault, requests have to be answered and accepted within this time, in milliseconds. */
const RECOVERY_MS = 120_000;

/** What an operator asks ClickHouse for. */
const REQUESTS_OF_REPLAYS = { 'read-dead-letter': 2, 'mark-dead-letter-replayed': 3 };

const PIPELINE_FAULTS: FaultTable<PipelineWorld> = { ...WRITER_FAULTS, ...CLIENT_FAULTS };

interface Plan extends Omit<PipelineOptions, 'onNote'> {
  readonly durationMs: number;
  readonly erases: boolean;
  readonly faults: readonly Fault[];
}

/** Everything from clients to tables under faults: what is accepted is stored once, and nothing else. */
export const PIPELINE: Kind = {
  name: 'pipeline',
  create(seed, note) {
    const plan = planOf(seed);
    const world = new PipelineWorld({ ...plan, onNote: note });
    return {
      world,
      faults: plan.faults,
      run: (faults) => run(world, { ...plan, faults }),
      end() {
        world.side.kill();
        for (const writer of world.writers) writer.kill();
      },
    };
  },
};

function planOf(seed: number): Plan {
  const random = new Random(seed, 'plan');
  const durationMs = 2_000 + random.below(5_000);
  // A message of many rows fits into ClickHouse's memory.
  const ofWriters = chooseWriterKinds(random, false).filter((kind) => kind !== 'little memory');
  const kinds = [...chooseKinds(random, CLIENT_FAULTS, 2), ...ofWriters];
  const faults = chooseFaults(random, {
    ...{ kinds, requests: { ...REQUESTS, ...REQUESTS_OF_INGEST, ...REQUESTS_OF_REPLAYS }, untilMs: durationMs },
    count: 3 + random.below(30),
  });
  return {
    ...{ seed, durationMs, faults, ...ingestPlan(random) },
    nodes: 1 + random.below(2),
    servers: [{ name: '', writers: 1 + random.below(2) }],
    isHasty: random.isTrue(0.8),
    erases: random.isTrue(0.2),
  };
}

async function run(world: PipelineWorld, { durationMs, faults, erases }: Plan): Promise<void> {
  const { time, side, writers } = world;
  const isWrong = () => world.violation !== undefined;
  for (const place of [...side.ingests, ...writers]) time.after(side.random.between(0, 500), () => place.start());
  for (const client of side.clients) client.start(durationMs);
  world.operator.start(durationMs);
  for (const fault of faults) scheduleFault(world, PIPELINE_FAULTS, fault);
  await time.runUntil(durationMs, isWrong);
  if (isWrong()) return;
  endFaults(world);
  for (const log of world.kafka.logs) log.replicas = 'in sync';
  side.mend();
  await time.runUntil(time.nowMs + RECOVERY_MS, () => isWrong() || side.isDone);
  if (!isWrong()) await side.checkEnd(RECOVERY_MS);
  // What is listed by now is replayed, and stored with the rest.
  if (!isWrong()) await recover(world);
  if (!isWrong()) await world.operator.replayAll(RECOVERY_MS);
  if (!isWrong()) await settle(world, { erases });
  if (isWrong()) return;
  for (const wrong of world.operator.wrongReplays()) world.report(wrong);
  for (const { clickhouse } of world.servers) {
    for (const wrong of wrongDelivery(side.clients, clickhouse.tables)) world.report(wrong);
  }
}
