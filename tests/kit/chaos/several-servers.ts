import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@sluice/shared/testing/until';
import { onServer } from '../audit.ts';
import { compareServers, type ServerComparison } from '../equal-servers.ts';
import type { Tally } from '../load.ts';
import { findMetric } from '../metrics.ts';
import type { PipelineServer } from '../pipeline.ts';
import { entryOf, type RangedServer, startRangedServer } from '../ranged-server.ts';
import { together } from '../together.ts';
import { verifyDelivery } from '../verify-delivery.ts';
import { freezeFor } from './freeze-for.ts';
import { type PlannedFault, serverNames, type Topology } from './schedule.ts';
import { urlsOf } from './slots.ts';
import type { ChaosStore, Comparison, Surroundings } from './store.ts';
import { fillFromMirror } from './wipe.ts';

/** How many partitions each topic has. */
const PARTITIONS = 6;

/** A server, and where its data is. */
interface Running extends RangedServer {
  readonly folder: string;
}

/**
 * Starts the ClickHouse servers of a topology.
 *
 * @param folder where their data goes
 */
export async function startSeveralServers(topology: Topology, folder: string): Promise<ChaosStore> {
  await using cleanup = new AsyncDisposableStack();
  const ranges = serverNames(topology);
  const running = new Map<string, Running>();
  const servers: Record<string, PipelineServer> = {};
  const serverOf = (name: string) => running.get(name) as Running;
  const starting = ranges.flat().map(async (name) => {
    const dataDir = join(folder, name);
    running.set(name, { ...cleanup.use(await startRangedServer({ dataDir })), folder: dataDir });
  });
  await Promise.all(starting);
  for (const [shard, mirrors] of ranges.entries()) {
    for (const name of mirrors) {
      servers[name] = entryOf(serverOf(name), partitionsOf(shard, topology));
    }
  }

  async function breakServer(name: string, { kind, lastsMs }: PlannedFault, { signal }: Surroundings): Promise<void> {
    const { engine, folder: dataDir } = serverOf(name);
    if (kind === 'freeze') return await freezeFor(engine.pid, lastsMs, signal);
    await (kind === 'stop' ? engine.stop() : engine.kill9());
    if (kind === 'wipe') await rm(dataDir, { recursive: true });
    await delay(lastsMs, undefined, { signal });
    await engine.restart();
  }

  /** Lets query-api read the first server of each range alone, and compares these with what was sent. */
  async function verifyFirst({ pipeline, slots }: Pick<Surroundings, 'pipeline' | 'slots'>, tally: Tally) {
    const read = ranges.map(([name]) => name as string);
    const entries = Object.entries(servers).map(([name, server]) => [name, { ...server, serves: read.includes(name) }]);
    await pipeline.writeServers(Object.fromEntries(entries));
    await slots.get('query-api 1')?.service.stop();
    await until('query-api to read these servers', async () => {
      const response = await fetch(`${pipeline.services['query-api'].url}/readyz`).catch(() => undefined);
      await response?.arrayBuffer();
      return response?.ok;
    });
    const [first, ...others] = read.map(serverOf) as [Running, ...Running[]];
    const ports = others.map(({ relay }) => relay.port);
    const { database } = pipeline;
    const all = ports.length === 0 ? database : await together(first.engine.url, ports, database);
    return await verifyDelivery({ ...pipeline, database: all }, first.engine.url, tally);
  }

  const kept = cleanup.move();
  return {
    clickhouseUrl: String(servers['a1']?.url),
    servers,
    async disturb(fault, surroundings) {
      const name = fault.target.slice('server '.length);
      await breakServer(name, fault, surroundings);
      if (fault.wipe) {
        const mirrors = ranges.find((names) => names.includes(name)) ?? [];
        const from = mirrors[(mirrors.indexOf(name) + 1) % mirrors.length] as string;
        await fillFromMirror({ from, to: name, engine: serverOf(name).engine, plan: fault.wipe, surroundings });
      }
      // Its mirror may be disturbed only now.
      await until(`query-api to read ${name} again`, async () => {
        const urls = urlsOf(surroundings.slots, 'query-api');
        return (await Promise.all(urls.map((url) => isReadable(url, name)))).every(Boolean);
      });
    },
    async verify(surroundings, tally) {
      // Before the tables are copied together.
      await surroundings.pipeline.drained();
      const delivery = await verifyFirst(surroundings, tally);
      const { database } = surroundings.pipeline;
      const compared: ServerComparison[] = [];
      for (const mirrors of ranges) {
        const databases = mirrors.map((name) => ({ url: serverOf(name).engine.url, database }));
        compared.push(await compareServers(databases, tally));
      }
      return { delivery, comparison: sumOf(compared) };
    },
    audited: (pipeline) =>
      Object.entries(servers).map(([name, server]) => {
        return { name, audited: onServer(pipeline, name, server), clickhouseUrl: server.url };
      }),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

function partitionsOf(shard: number, { shards }: Topology): string | undefined {
  if (shards === 1) return undefined;
  const start = (at: number) => Math.floor((at * PARTITIONS) / shards);
  return `${start(shard)}-${start(shard + 1) - 1}`;
}

/** Whether a query-api would read a server if it had no other one of its range. */
async function isReadable(url: string, server: string): Promise<boolean> {
  const isUsable = (await findMetric({ url }, 'sluice_query_server_readable', { server })) === 1;
  // It is known once a writer has stored again.
  return isUsable && (await findMetric({ url }, 'sluice_query_server_behind_seconds', { server })) !== undefined;
}

function sumOf(comparisons: readonly ServerComparison[]): Comparison {
  const rows = comparisons.flatMap(({ equal }) => Object.values(equal));
  return {
    equalRows: rows.reduce((sum, count) => sum + count, 0),
    different: comparisons.flatMap(({ different }) => different),
  };
}
