import { cp, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { expect, inject, test } from 'vitest';
import { restoreAccountXml, sluice } from '../kit/backups.ts';
import { readClickHouse } from '../kit/clickhouse.ts';
import { ownClickHouse } from '../kit/engines.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { startS3Server } from '../kit/s3-server.ts';
import { startTcpProxy } from '../kit/tcp-proxy.ts';

const DATABASE = 'test_buckets';
const ACCOUNT = { CLICKHOUSE_MIGRATE_USER: 'sluice_restore', CLICKHOUSE_MIGRATE_PASSWORD: 'password-of-restore' };

const SECRET = 'a-secret-that-no-output-may-show';
const CREDENTIALS = { BACKUP_S3_ACCESS_KEY_ID: 'sluice-backups', BACKUP_S3_SECRET_ACCESS_KEY: SECRET };

test('a backup is restored from an S3 server by an account with the rights of the page, and the secret is shown nowhere', async () => {
  await using backups = await makeTempDir();
  await using logs = await makeTempDir();
  const { CLICKHOUSE_MIGRATE_USER: name, CLICKHOUSE_MIGRATE_PASSWORD: password } = ACCOUNT;
  const usersFiles = { 'restore.xml': await restoreAccountXml(DATABASE, { name, password }) };
  await using clickhouse = await ownClickHouse({ backupDir: backups.path, logDir: logs.path, usersFiles });
  await using s3 = await startS3Server({ keyId: 'sluice-backups', secret: SECRET });
  const kafkaBrokers = inject('kafkaBrokers');
  await using running = await startPipeline({
    kafkaBrokers,
    clickhouseUrl: clickhouse.url,
    name: 'buckets',
    database: DATABASE,
  });
  const read = (sql: string) => readClickHouse(clickhouse.url, sql, { database: running.database });
  const events = Array.from({ length: 300 }, () => ({ event: 'e' }));
  expect((await running.submit({ foreignUserGroupId: 'g', events })).status).toBe(202);
  await running.drained();
  const outputs: string[] = [];
  /** The first line of each request of the commands to ClickHouse: an address may be logged on its way. */
  const requestLines: string[] = [];
  const { hostname: host, port } = new URL(clickhouse.url);
  await using proxy = await startTcpProxy({ host, port: Number(port) }, (client, upstream) => {
    client.on('data', (chunk) => requestLines.push(...(chunk.toString('latin1').match(/^[A-Z]+ \S+ HTTP/gm) ?? [])));
    client.pipe(upstream).pipe(client);
  });
  const run = async (args: readonly string[], env: Readonly<Record<string, string>>) => {
    const end = await sluice(running, args, { CLICKHOUSE_URL: `http://127.0.0.1:${proxy.port}`, ...env });
    outputs.push(end.output);
    return end;
  };

  // The engine of the tests cannot write to S3 (its thread pool for it is missing), so the files of a directory become
  // objects. A server reads and writes both in the same form.
  const written = await run(['backup', '--to', `${s3.bucketUrl}/written`], CREDENTIALS);
  expect(written).toEqual({ code: 1, output: expect.stringContaining('BackupsIOThreadPool is not initialized') });
  expect(await run(['backup', '--to', join(backups.path, 'monday')], {})).toMatchObject({ code: 0 });
  await cp(join(backups.path, 'monday'), join(s3.bucketDir, 'monday'), { recursive: true });
  await running.services.writer.stop();

  const from = ['restore', '--from', `${s3.bucketUrl}/monday`, '--yes'];
  const wrong = await run(from, { ...ACCOUNT, ...CREDENTIALS, BACKUP_S3_SECRET_ACCESS_KEY: `${SECRET}-wrong` });
  expect(wrong).toEqual({
    code: 1,
    output: expect.stringMatching(/Nothing was restored: .*\nCheck the address, BACKUP_S3/),
  });
  expect(await run(from, { ...ACCOUNT, ...CREDENTIALS })).toEqual({
    code: 0,
    output: expect.stringContaining('is restored: '),
  });
  expect(await read('SELECT count() FROM events')).toBe('300');

  const operations = await readClickHouse(clickhouse.url, 'SELECT * FROM system.backups FORMAT JSONEachRow');
  expect(operations).toContain('[HIDDEN]');
  const files = await Promise.all((await readdir(logs.path)).map((file) => readFile(join(logs.path, file), 'utf8')));
  expect(requestLines).not.toEqual([]);
  const stored = await read('SELECT * FROM backups FORMAT JSONEachRow');
  for (const text of [operations, ...files, ...outputs, ...requestLines, stored]) expect(text).not.toContain(SECRET);
});
