import { readdir, readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { basename, join, relative } from 'node:path';
import { PassThrough, Transform } from 'node:stream';
import type { LocalClickHouse, LocalClickHouseOptions } from '@sluice/local-stack/clickhouse';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { ownClickHouse } from './engines.ts';
import { type S3Server, startS3Server } from './s3-server.ts';
import { startTcpProxy } from './tcp-proxy.ts';

const PAGE = new URL('../../docs/operate/cold-storage.md', import.meta.url);

const KEY_ID = 'sluice-cold';

/** The secret of S3, which no output may show. */
export const COLD_SECRET = 'a-secret-of-the-cold-volume';

/** The environment of a writer that moves months which ended more than 40 days ago, soon after they were stored. */
export const COLD_ENV = {
  EVENTS_COLD_AFTER_DAYS: '40',
  ERASURE_INTERVAL_MS: '200',
  RETENTION_INTERVAL_MS: '500',
} as const;

/** A time in a month that has ended more than 40 days ago, and has room for late events: in milliseconds. */
export const COLD_TIME = Date.now() - 80 * 86_400_000;

/** ClickHouse would otherwise keep what a rewrite has replaced for eight minutes, and look for it every half a minute. */
const REMOVED_SOON = `<clickhouse><merge_tree>
  <old_parts_lifetime>1</old_parts_lifetime>
  <cleanup_delay_period>1</cleanup_delay_period>
  <max_cleanup_delay_period>1</max_cleanup_delay_period>
  <cleanup_delay_period_random_add>0</cleanup_delay_period_random_add>
</merge_tree></clickhouse>`;

/** A request takes so long of an S3 that is slow, in milliseconds. ClickHouse waits longer. */
const SLOW_MS = 1_200;

/**
 * How S3 behaves to ClickHouse: `away`, each connection is closed at once; `silent`, connections are accepted, and nothing is
 * answered; `slow`, each piece that it is sent comes late.
 */
export type S3State = 'there' | 'away' | 'silent' | 'slow';

/** A ClickHouse with the storage policy of docs/operate/cold-storage.md, and its S3 server. */
export interface ColdStorage extends AsyncDisposable {
  readonly clickhouse: LocalClickHouse;
  /** The folder of ClickHouse's logs. */
  readonly logDir: string;
  readonly s3: S3Server;
  /** How many requests S3 was sent so far. */
  requests(): number;
  /** Ends the connections to S3; those that follow find it so. */
  s3Becomes(state: S3State): void;
  /** As {@link s3Becomes} `away`, with the next but so many requests that write. */
  awayAfterWrites(writes: number): void;
  /** The objects of S3, by their keys, each with its whole content. */
  objects(): Promise<ReadonlyMap<string, Buffer>>;
  /** Returns the statement of the page that lists the objects which ClickHouse does not know, of any age. */
  statementOfUnknownObjects(): Promise<string>;
}

/** A path of the bucket of an S3 server that several servers of ClickHouse have. */
export interface SharedS3 {
  readonly s3: S3Server;
  readonly path: string;
}

/**
 * @param options of ClickHouse, besides its configuration
 * @param shared default: an S3 server of its own
 */
export async function startColdStorage(
  options: Partial<LocalClickHouseOptions> = {},
  shared?: SharedS3,
): Promise<ColdStorage> {
  await using started = new AsyncDisposableStack();
  const s3 = shared?.s3 ?? started.use(await startS3Server({ keyId: KEY_ID, secret: COLD_SECRET }));
  let requests = 0;
  let writesLeft = Number.POSITIVE_INFINITY;
  let state: S3State = 'there';
  const clients = new Set<Socket>();
  const become = (next: S3State) => {
    state = next;
    for (const client of clients) client.destroy();
  };
  const { hostname: host, port } = new URL(s3.bucketUrl);
  const proxy = started.use(
    await startTcpProxy({ host, port: Number(port) }, (client, upstream) => {
      if (state === 'away') {
        client.destroy();
        return;
      }
      clients.add(client);
      client.on('close', () => clients.delete(client));
      client.on('data', (chunk) => {
        const methods = chunk.toString('latin1').match(/^(GET|HEAD|PUT|POST|DELETE)(?= \S+ HTTP)/gm) ?? [];
        requests += methods.length;
        writesLeft -= methods.filter((method) => method === 'PUT').length;
        if (writesLeft >= 0) return;
        writesLeft = Number.POSITIVE_INFINITY;
        become('away');
      });
      if (state !== 'silent')
        client
          .pipe(state === 'slow' ? late() : new PassThrough())
          .pipe(upstream)
          .pipe(client);
    }),
  );
  const endpoint = `http://${host}:${proxy.port}${new URL(s3.bucketUrl).pathname}/${shared?.path ?? 'sluice'}/`;
  const logDir = started.use(await makeTempDir()).path;
  const clickhouse = started.use(
    await ownClickHouse({
      ...options,
      logDir,
      configFiles: { 'cold.xml': await configXml(endpoint), 'removed.xml': REMOVED_SOON },
    }),
  );
  const running = started.move();
  return {
    ...{ clickhouse, logDir, s3 },
    requests: () => requests,
    s3Becomes: become,
    awayAfterWrites(writes) {
      writesLeft = writes;
    },
    async objects() {
      const entries = await readdir(s3.bucketDir, { recursive: true, withFileTypes: true });
      const found = new Map<string, Buffer>();
      for (const { parentPath, name } of entries.filter((entry) => entry.isFile())) {
        const file = join(parentPath, name);
        // ClickHouse may remove one meanwhile.
        const content = await readFile(file).catch(() => undefined);
        if (content) found.set(relative(s3.bucketDir, file), content);
      }
      return found;
    },
    async statementOfUnknownObjects() {
      const [, sql = ''] = /```sql\n(SELECT _path.*?)```/s.exec(await readFile(PAGE, 'utf8')) ?? [];
      const filled = sql
        .replace(/https:.*(?=\*\*')/, endpoint)
        .replace('KEY_ID', KEY_ID)
        .replace('SECRET', COLD_SECRET)
        .replace('my-bucket/', `${basename(s3.bucketDir)}/`)
        .replace('INTERVAL 1 DAY', 'INTERVAL -1 DAY');
      if (!filled.includes(`${endpoint}**`) || !filled.includes('-1 DAY'))
        throw new Error('the page has no such statement');
      return filled;
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** Returns the file of config.d of the page, for another address and account. */
async function configXml(endpoint: string): Promise<string> {
  const [, xml = ''] = /```xml\n(.*?)```/s.exec(await readFile(PAGE, 'utf8')) ?? [];
  const filled = xml
    .replace(/(?<=<endpoint>).*(?=<)/, endpoint)
    .replace('KEY_ID', KEY_ID)
    .replace('SECRET', COLD_SECRET);
  if (!filled.includes(endpoint) || !filled.includes(COLD_SECRET)) throw new Error('the page has no such file');
  return filled;
}

/** A stream that passes each piece on late. */
function late(): Transform {
  return new Transform({
    transform(chunk, _encoding, done) {
      setTimeout(() => done(null, chunk), SLOW_MS);
    },
  });
}
