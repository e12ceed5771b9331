import { sleep } from '@sluice/shared/base/retry';
import { measureHalfOfCapacity } from '../processes/steady-load.ts';
import { PROCESS_NAMES, System } from '../processes/system.ts';
import { type Benchmark, type Figure, figureOf, median } from '../report/benchmark.ts';

const SAMPLES = 60;
const MEBIBYTE = 2 ** 20;

/** Memory must not grow: the last third of the time divided by the one before it. */
const BAR = { atMost: 1.1 };

export const MEMORY: Benchmark<{ minutes: number }> = {
  name: 'memory',
  title: 'Memory under a steady load',
  method:
    'The resident memory of each process under half of the load that the system could store, 20 events a request. The last ' +
    'third of the time is compared with the one before it: it must not have grown. The first third is for caches that fill.',
  size: { minutes: 5 },
  measure,
};

async function measure({ minutes }: { minutes: number }): Promise<readonly Figure[]> {
  await using system = await System.start();
  const half = await measureHalfOfCapacity(system);
  const durationMs = minutes * 60_000;
  const loading = system.load(half.shape(durationMs));
  const samples: Record<(typeof PROCESS_NAMES)[number], number[]> = {
    'ingest-api': [],
    Kafka: [],
    writer: [],
    ClickHouse: [],
  };
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    await sleep(durationMs / SAMPLES);
    for (const name of PROCESS_NAMES) samples[name].push((await system.memory(name)) / MEBIBYTE);
  }
  await loading;
  await system.expectExactlyOnce();
  return PROCESS_NAMES.flatMap((name) => {
    const middle = samples[name].slice(SAMPLES / 3, (2 * SAMPLES) / 3);
    const last = samples[name].slice((2 * SAMPLES) / 3);
    return [
      figureOf(name, 'last third of the time', 'MiB', last),
      figureOf(name, 'last third ÷ the one before', '', [median(last) / median(middle)], BAR),
    ];
  });
}
