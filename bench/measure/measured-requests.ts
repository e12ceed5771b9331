import type { Agent } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { BenchEngine } from '../processes/engine.ts';
import { type QueryApi, send } from '../processes/query-api.ts';
import { median, VoidRun } from '../report/benchmark.ts';
import { cpuTimeUs } from './cpu-time.ts';

/** Requests between two readings of the CPU time, which is counted in hundredths of a second. */
const REQUESTS = 5;
const CHEAP_REQUESTS = 50;

interface RequestTimes {
  /** Until the first record was received. */
  readonly firstMs: number;
  readonly ms: number;
}

/** The cost of one request. */
export interface RequestCost extends RequestTimes {
  /** CPU of ClickHouse and of query-api. */
  readonly cpuMs: number;
}

export interface MeasuredRequest {
  readonly name: string;
  readonly run: () => Promise<RequestTimes>;
  /** The process whose CPU time is added to that of ClickHouse. */
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
      if (response.status !== 200)
        throw new VoidRun(`${name}: ${response.status} ${JSON.stringify(response.body).slice(0, 300)}`);
      return response;
    },
  };
}

/** `SELECT 1` by plain HTTP. */
export function selectOne(name: string, url: string, agent: Agent): MeasuredRequest {
  return {
    name,
    requests: CHEAP_REQUESTS,
    async run() {
      const startedAt = performance.now();
      await buffer(await send(`${url}/?query=SELECT+1`, agent));
      const ms = performance.now() - startedAt;
      return { firstMs: ms, ms };
    },
  };
}

/** Measures requests in turn, and returns the cost of each by its name, the median of all rounds. */
export async function measureRequests(
  engine: BenchEngine,
  rounds: number,
  requests: readonly MeasuredRequest[],
): Promise<(name: string) => RequestCost> {
  const measured = new Map<string, RequestCost[]>(requests.map(({ name }) => [name, []]));
  // Round -1 warms up.
  for (let round = -1; round < rounds; round += 1) {
    for (const request of requests) {
      const cost = await measureTurns(engine, request);
      if (round >= 0) measured.get(request.name)?.push(cost);
    }
  }
  return (name) => {
    const of = (key: keyof RequestCost) => median((measured.get(name) ?? []).map((cost) => cost[key]));
    return { firstMs: of('firstMs'), ms: of('ms'), cpuMs: of('cpuMs') };
  };
}

async function measureTurns(
  engine: BenchEngine,
  { run, pid, requests = REQUESTS }: MeasuredRequest,
): Promise<RequestCost> {
  const times: RequestTimes[] = [];
  const ownUs = async () => (pid === undefined ? 0 : await cpuTimeUs(pid));
  const ownBefore = await ownUs();
  const { cpuUs } = await engine.measure(async () => {
    for (let turn = 0; turn < requests; turn += 1) times.push(await run());
  });
  const cpuMs = (cpuUs + (await ownUs()) - ownBefore) / requests / 1_000;
  const of = (key: keyof RequestTimes) => median(times.map((time) => time[key]));
  return { firstMs: of('firstMs'), ms: of('ms'), cpuMs };
}
