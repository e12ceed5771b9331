import type { Agent } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { cpuTimeUs } from './cpu-time.ts';
import type { BenchEngine } from './engine.ts';
import { median } from './figures.ts';
import { type QueryApi, send } from './query-api.ts';

/** Requests between two readings of the CPU time, which is counted in hundredths of a second. */
const REQUESTS = 5;
export const CHEAP_REQUESTS = 50;

/** The cost of one request. */
export interface RequestCost {
  readonly firstMs: number;
  readonly ms: number;
  /** CPU of ClickHouse and of query-api. */
  readonly cpuMs: number;
}

export interface MeasuredRequest {
  readonly name: string;
  readonly run: () => Promise<Pick<RequestCost, 'firstMs' | 'ms'>>;
  readonly pid?: number;
  /** Default {@link REQUESTS}. */
  readonly requests?: number;
}

/** A request to query-api that must succeed. */
export function page(
  name: string,
  api: QueryApi,
  parameters: Readonly<Record<string, string>>,
  path = '/events',
): MeasuredRequest {
  return {
    name,
    pid: api.pid,
    async run() {
      const response = await api.get(path, parameters);
      if (response.status !== 200) throw new Error(`${name}: ${response.status} ${JSON.stringify(response.body)}`);
      return response;
    },
  };
}

/** Sends `SELECT 1` by plain HTTP. */
export async function selectOne(url: string, agent: Agent): Promise<Pick<RequestCost, 'firstMs' | 'ms'>> {
  const startedAt = performance.now();
  await buffer(await send(`${url}/?query=SELECT+1`, agent));
  const ms = performance.now() - startedAt;
  return { firstMs: ms, ms };
}

/** Measures requests in turn. Prints and returns the medians. */
export async function measure(
  engine: BenchEngine,
  rounds: number,
  measuredRequests: readonly MeasuredRequest[],
): Promise<ReadonlyMap<string, RequestCost>> {
  const measured = new Map<string, RequestCost[]>(measuredRequests.map(({ name }) => [name, []]));
  // Round -1 warms up.
  for (let round = -1; round < rounds; round += 1) {
    for (const { name, run, pid, requests: turns = REQUESTS } of measuredRequests) {
      const times: Pick<RequestCost, 'firstMs' | 'ms'>[] = [];
      const ownBefore = pid === undefined ? 0 : await cpuTimeUs(pid);
      const { cpuUs } = await engine.measure(async () => {
        for (let turn = 0; turn < turns; turn += 1) times.push(await run());
      });
      const own = pid === undefined ? 0 : (await cpuTimeUs(pid)) - ownBefore;
      if (round < 0) continue;
      const cpuMs = (cpuUs + own) / turns / 1_000;
      const of = (key: 'firstMs' | 'ms') => median(times.map((time) => time[key]));
      measured.get(name)?.push({ firstMs: of('firstMs'), ms: of('ms'), cpuMs });
    }
  }
  const medians = new Map(
    [...measured].map(([name, costs]) => {
      const of = (key: keyof RequestCost) => median(costs.map((cost) => cost[key]));
      return [name, { firstMs: of('firstMs'), ms: of('ms'), cpuMs: of('cpuMs') }];
    }),
  );
  const lines = [...medians].map(([name, { firstMs, ms, cpuMs }]) => [
    name,
    { 'first record, ms': firstMs.toFixed(1), 'all, ms': ms.toFixed(1), 'CPU, ms': cpuMs.toFixed(1) },
  ]);
  console.table(Object.fromEntries(lines));
  return medians;
}
