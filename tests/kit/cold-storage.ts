import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LocalClickHouse, LocalClickHouseOptions } from '@sluice/local-stack/clickhouse';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { ownClickHouse } from './engines.ts';
import { type S3Server, startS3Server } from './s3-server.ts';
import { startTcpProxy } from './tcp-proxy.ts';

const PAGE = new URL('../../docs/operate/cold-storage.md', import.meta.url);

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

/** A ClickHouse with the storage policy of docs/operate/cold-storage.md, and its S3 server. */
export interface ColdStorage extends AsyncDisposable {
  readonly clickhouse: LocalClickHouse;
  /** The folder of ClickHouse's logs. */
  readonly logDir: string;
  readonly s3: S3Server;
  /** How many requests S3 was sent so far. */
  requests(): number;
  /** Cuts ClickHouse off from S3, or lets it through again: each connection is closed at once. */
  cutOff(isCutOff: boolean): void;
  /** The objects of S3, each by its whole content. */
  objects(): Promise<readonly Buffer[]>;
}

/** @param options of ClickHouse, besides its configuration */
export async function startColdStorage(options: Partial<LocalClickHouseOptions> = {}): Promise<ColdStorage> {
  await using started = new AsyncDisposableStack();
  const s3 = started.use(await startS3Server({ keyId: 'sluice-cold', secret: COLD_SECRET }));
  let requests = 0;
  let isAway = false;
  const { hostname: host, port } = new URL(s3.bucketUrl);
  const cutOffs = new Set<() => void>();
  const proxy = started.use(
    await startTcpProxy({ host, port: Number(port) }, (client, upstream) => {
      if (isAway) {
        client.destroy();
        return;
      }
      cutOffs.add(() => client.destroy());
      client.on('data', (chunk) => {
        requests += chunk.toString('latin1').match(/^(GET|HEAD|PUT|POST|DELETE) \S+ HTTP/gm)?.length ?? 0;
      });
      client.pipe(upstream).pipe(client);
    }),
  );
  const endpoint = `http://${host}:${proxy.port}${new URL(s3.bucketUrl).pathname}/sluice/`;
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
    cutOff(isCutOff) {
      isAway = isCutOff;
      for (const cut of isCutOff ? cutOffs : []) cut();
      cutOffs.clear();
    },
    async objects() {
      const entries = await readdir(s3.bucketDir, { recursive: true, withFileTypes: true });
      const files = entries.filter((entry) => entry.isFile());
      // ClickHouse may remove one meanwhile.
      const contents = files.map(({ parentPath, name }) => readFile(join(parentPath, name)).catch(() => undefined));
      return (await Promise.all(contents)).filter((content) => content !== undefined);
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** Returns the file of config.d of the page, for another address and account. */
async function configXml(endpoint: string): Promise<string> {
  const [, xml = ''] = /```xml\n(.*?)```/s.exec(await readFile(PAGE, 'utf8')) ?? [];
  const filled = xml
    .replace(/(?<=<endpoint>).*(?=<)/, endpoint)
    .replace('KEY_ID', 'sluice-cold')
    .replace('SECRET', COLD_SECRET);
  if (!filled.includes(endpoint) || !filled.includes(COLD_SECRET)) throw new Error('the page has no such file');
  return filled;
}
