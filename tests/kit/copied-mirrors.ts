import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { LocalClickHouse } from '@sluice/local-stack/clickhouse';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject } from 'vitest';
import { startSluice } from './backups.ts';
import { readClickHouse } from './clickhouse.ts';
import { compareServers, expectComparedSame } from './compared-servers.ts';
import { ownClickHouse } from './engines.ts';
import { expectEqualServers } from './equal-servers.ts';
import { type Load, startLoad } from './load.ts';
import { type Pipeline, type PipelineServer, startPipeline } from './pipeline.ts';
import { startStatementProxy } from './statement-proxy.ts';
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
    async more(events = 200) {
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

/**
 * Wipes a server under load and copies the other one to it again and again. Each run is killed when it gets to a
 * step for the first time, until one has reached the end. Both servers have everything once, and the same.
 *
 * @param name of the pipeline
 * @returns the steps at which runs were killed, in their order
 */
export async function copyDespiteKills(name: string): Promise<readonly string[]> {
  await using mirrors = await startCopiedMirrors(name);
  const { other, running, servers, more, read } = mirrors;
  await more();
  await running.writers['a2']?.stop();
  await mirrors.wipe();

  const reached: string[] = [];
  let at = '';
  let isFilling = false;
  let kill: (() => Promise<unknown>) | undefined;
  await using proxy = await startStatementProxy(other.url, async (name, moment) => {
    if (name === 'record-alive') return;
    at = `${moment} ${name}`;
    if (at === 'after record-filling') isFilling = true;
    // The first time that a run gets so far.
    if (reached.includes(at) || !kill) return;
    reached.push(at);
    await kill();
  });
  await running.writeServers({ ...servers, a2: { ...servers.a2, url: proxy.url } });
  for (;;) {
    const copy = startSluice(running, COPY);
    let isKilled = false;
    kill = async () => {
      isKilled = true;
      copy.child.kill('SIGKILL');
      await copy.ended;
    };
    const { code, output } = await copy.ended;
    const state = await read(other, 'SELECT state FROM database_identity ORDER BY recorded_at DESC LIMIT 1');
    if (isFilling) {
      if (state === 'complete') break;
      expect([at, state]).toEqual([at, 'filling']);
    }
    // What a run has sent may arrive after it was killed.
    if (!isKilled)
      expect([code, output]).toEqual([1, expect.stringContaining('Another command copies to this server')]);
    // As after twenty seconds of silence.
    await read(
      other,
      "INSERT INTO copies SELECT run, 'ended', source, source_id, '', 0, [], recorded_at + 1 FROM copies ORDER BY recorded_at DESC LIMIT 1",
    );
    await more(30);
  }
  await running.writeServers(servers);
  await mirrors.startWriter();
  await more();
  await mirrors.expectEqual();
  return reached;
}
