import { cpuTimeUs } from './cpu-time.ts';
import { createTally, LOADS, median, ROUND_MS, spread } from './figures.ts';
import { forkReady, startLoader } from './load.ts';
import { difference, startSystem } from './system.ts';

interface Round {
  readonly requestsPerSecond: number;
  readonly latencyMs: { readonly median: number; readonly p99: number };
  /** CPU time of each process, in microseconds per event. */
  readonly cpuUs: Readonly<Record<string, number>>;
}

/**
 * Compares ingest-api on a real Kafka with a bare Fastify that parses the same JSON and responds 202, and submissions with
 * the same events as calls, in alternating rounds. The writer is down during the rounds. At the end it stores everything,
 * and the events are counted.
 *
 * @returns whether all accepted events are stored once
 */
export async function benchIngest(rounds: number): Promise<boolean> {
  await using system = await startSystem();
  const { pipeline } = system;
  const loader = await startLoader();
  const bare = await forkReady('bare-fastify.ts');
  try {
    await pipeline.services.writer.kill9();
    const tally = createTally();
    let firstEvent = 0;

    async function run(
      load: (typeof LOADS)[number],
      target: 'ingest' | 'calls' | 'bare',
      durationMs = ROUND_MS,
    ): Promise<Round> {
      const url = target === 'bare' ? String(bare.message) : pipeline.services['ingest-api'].url;
      const calls = target === 'calls';
      const cpuTimes = async () => ({
        ...(await system.cpuTimes(['ingest-api', 'Kafka'])),
        'bare Fastify': await cpuTimeUs(bare.process.pid ?? -1),
        'load generator': await cpuTimeUs(loader.pid),
      });
      const before = await cpuTimes();
      const result = await loader.run({ url, key: pipeline.key, ...load, calls, durationMs, firstEvent });
      const used = difference(before, await cpuTimes());
      if (target !== 'bare') {
        tally.add(result);
        firstEvent += result.events;
      }
      return {
        requestsPerSecond: result.requests / result.seconds,
        latencyMs: result.latencyMs,
        cpuUs: Object.fromEntries(Object.entries(used).map(([name, us]) => [name, us / result.events])),
      };
    }

    for (const load of LOADS) {
      const ingest: Round[] = [];
      const calls: Round[] = [];
      const fastify: Round[] = [];
      const again: Round[] = [];
      for (const target of ['ingest', 'calls', 'bare'] as const) await run(load, target, ROUND_MS / 2);
      for (let round = 0; round < rounds; round += 1) {
        fastify.push(await run(load, 'bare'));
        ingest.push(await run(load, 'ingest'));
        calls.push(await run(load, 'calls'));
        again.push(await run(load, 'bare'));
      }
      print(load.eventsPerRequest, { ingest, calls, bare: fastify, again });
    }
    await pipeline.restart('writer');
    await system.storedAtLeast(tally.events);
    return tally.verdict(await system.stored());
  } finally {
    loader.stop();
    bare.process.kill();
  }
}

function print(
  eventsPerRequest: number,
  { ingest, calls, bare, again }: Readonly<Record<'ingest' | 'calls' | 'bare' | 'again', readonly Round[]>>,
): void {
  const rates = (rounds: readonly Round[]) => rounds.map(({ requestsPerSecond }) => requestsPerSecond);
  const ratios = (over: readonly Round[], under: readonly Round[]) =>
    rates(over).map((rate, index) => rate / (rates(under)[index] ?? Number.NaN));
  const cpu = (rounds: readonly Round[], name: string) => rounds.map(({ cpuUs }) => cpuUs[name] ?? Number.NaN);
  console.log(`\n${eventsPerRequest} events a request: median (lowest to highest) of ${ingest.length} rounds`);
  console.table({
    'ingest-api, requests/s': spread(rates(ingest)),
    'ingest-api, events/s': spread(rates(ingest).map((rate) => rate * eventsPerRequest)),
    'bare Fastify, requests/s': spread(rates(bare)),
    'ingest-api ÷ bare Fastify': spread(ratios(ingest, bare), 2),
    'bare Fastify ÷ itself': spread(ratios(again, bare), 2),
    'response, ms': spread(
      ingest.map(({ latencyMs }) => latencyMs.median),
      1,
    ),
    'response, ms, p99': spread(
      ingest.map(({ latencyMs }) => latencyMs.p99),
      1,
    ),
    'CPU µs an event, ingest-api': spread(cpu(ingest, 'ingest-api'), 1),
    'CPU µs an event, Kafka': spread(cpu(ingest, 'Kafka'), 1),
    'CPU µs an event, bare Fastify': spread(cpu(bare, 'bare Fastify'), 1),
    'CPU µs an event, load generator': spread(cpu(ingest, 'load generator'), 1),
    'CPU µs an event, ingest-api, as calls': spread(cpu(calls, 'ingest-api'), 1),
    'CPU of calls ÷ submissions (bar 1.3)': spread(
      cpu(calls, 'ingest-api').map((us, index) => us / (cpu(ingest, 'ingest-api')[index] ?? Number.NaN)),
      2,
    ),
    'CPU of ingest-api ÷ bare Fastify': (median(cpu(ingest, 'ingest-api')) / median(cpu(bare, 'bare Fastify'))).toFixed(
      2,
    ),
  });
}
