import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { LocalClickHouse } from '@sluice/local-stack/clickhouse';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject } from 'vitest';
import { readClickHouse } from './clickhouse.ts';
import { compareServers, expectComparedSame } from './compared-servers.ts';
import { ownClickHouse } from './engines.ts';
import { expectEqualServers } from './equal-servers.ts';
import { type Load, startLoad } from './load.ts';
import { type Pipeline, type PipelineServer, startPipeline } from './pipeline.ts';
import { expectExactlyOnce } from './verify-delivery.ts';

/** Two mirrors under load. The second one has a data folder that can be wiped. */
export interface CopiedMirrors extends AsyncDisposable {
  readonly one: LocalClickHouse;
  readonly other: LocalClickHouse;
  readonly running: Pipeline;
  readonly load: Load;
  readonly servers: Readonly<Record<'a1' | 'a2', PipelineServer>>;
  /** Waits until more events are accepted. */
  more(events?: number): Promise<void>;
  /** Kills the second engine, removes all of its data, and starts it again. */
  wipe(): Promise<void>;
  /** Starts the writer of the second server again. */
  startWriter(): Promise<void>;
  read(engine: LocalClickHouse, sql: string): Promise<string>;
  /** Ends the load, and checks that both servers have everything once, and the same. */
  expectEqual(): Promise<void>;
}

export async function startCopiedMirrors(name: string): Promise<CopiedMirrors> {
  await using started = new AsyncDisposableStack();
  const folder = join(started.use(await makeTempDir()).path, 'other');
  const one = started.use(await ownClickHouse());
  const other = started.use(await ownClickHouse({ dataDir: folder }));
  const servers = {
    a1: { url: one.url, native: `127.0.0.1:${one.tcpPort}` },
    a2: { url: other.url, native: `127.0.0.1:${other.tcpPort}` },
  };
  const options = { kafkaBrokers: inject('kafkaBrokers'), clickhouseUrl: one.url, name, servers };
  const running = started.use(await startPipeline(options));
  const urls = () => [running.services['ingest-api'].url];
  const load = started.use(startLoad({ pipeline: running, urls, concurrency: 6 }));
  const { database } = running;
  const owned = started.move();
  return {
    ...{ one, other, running, load, servers },
    async more(events = 100) {
      const before = load.acceptedSoFar();
      await eventually(load.acceptedSoFar).toBeGreaterThan(before + events);
    },
    async wipe() {
      await other.kill9();
      await rm(folder, { recursive: true });
      await other.restart();
    },
    async startWriter() {
      const { a2 } = running.writers;
      if (!a2) throw new Error('a2 has no writer');
      running.writers['a2'] = await running.replace(a2);
    },
    read: (engine, sql) => readClickHouse(engine.url, sql, { database }),
    async expectEqual() {
      const tally = await load.stop();
      for (const [name, { url }] of Object.entries({ a1: one, a2: other })) {
        // They may differ in events that were sent again for another user, so query-api must read the one that is compared.
        await running.services['query-api'].stop();
        const serves = (server: string) => server === name;
        await running.writeServers({
          a1: { ...servers.a1, serves: serves('a1') },
          a2: { ...servers.a2, serves: serves('a2') },
        });
        await running.restart('query-api');
        await expectExactlyOnce(running, url, tally);
        const rows = (final: string) =>
          readClickHouse(
            url,
            `SELECT count() FROM events ${final}
             WHERE (workspace_id, user_id) NOT IN (SELECT workspace_id, user_id FROM user_deletions)`,
            { database },
          );
        expect(await rows('')).toBe(await rows('FINAL'));
      }
      await expectEqualServers(
        [one, other].map(({ url }) => ({ url, database })),
        tally,
      );
      expectComparedSame(await compareServers(running, 'a1', 'a2'), tally);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The command that fills `a2`. */
export const COPY: readonly string[] = ['servers', 'copy', '--from', 'a1', '--to', 'a2', '--yes'];
