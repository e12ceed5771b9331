import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { expect, inject, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { runImporter } from '../kit/importer.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import type { EntityRecord } from '../kit/records.ts';

const CALLS = 30_000;

/** Events per second that the key may send, so that the import goes on while ingest-api is killed, on any machine. */
const RATE = 3_000;

const USERS = 23;
const ORGANIZATIONS = 7;

interface ArchivedCall {
  readonly type: string;
  readonly userId: string;
  readonly groupId?: string;
  readonly [field: string]: unknown;
}

/** A call as Segment archives it. Every thousandth is none that Sluice takes. */
function archivedCall(index: number): ArchivedCall {
  const happened = Date.UTC(2025, 0, 1) + index * 1_000;
  const times = {
    originalTimestamp: new Date(happened).toISOString(),
    sentAt: new Date(happened + 20).toISOString(),
    receivedAt: new Date(happened + 900).toISOString(),
    timestamp: new Date(happened + 880).toISOString(),
  };
  const common = { messageId: `m-${index}`, context: {}, integrations: {}, userId: `u${index % USERS}`, ...times };
  if (index % 1_000 === 999) return { ...common, type: 'delete' };
  if (index % 3 === 0) return { ...common, type: 'identify', traits: { index } };
  if (index % 3 === 1) return { ...common, type: 'group', groupId: `o${index % ORGANIZATIONS}`, traits: { index } };
  return { ...common, type: 'track', event: 'Opened', properties: { index } };
}

/** The property `index` of each entity, which is the number of the last call that changed it. */
async function lastChanges(pipeline: Pipeline, path: string, ids: readonly string[]): Promise<unknown[]> {
  const records = await Promise.all(ids.map((id) => pipeline.get<EntityRecord>(`${path}/${id}`)));
  return records.map(({ body }) => body.properties['index']);
}

test('ingest-api is killed during an import of archived calls: each is stored once, changes in order, refusals are named', async () => {
  await using folder = await makeTempDir();
  await using pipeline = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'archived',
    env: { RATE_LIMIT_DEFAULT: String(RATE) },
  });
  const calls = Array.from({ length: CALLS }, (_, index) => archivedCall(index));
  const file = join(folder.path, 'calls.ndjson.gz');
  await writeFile(file, gzipSync(calls.map((call) => `${JSON.stringify(call)}\n`).join('')));
  const refusedFile = join(folder.path, 'refused.txt');
  const args = ['--format', 'segment', '--url', pipeline.services['ingest-api'].url, '--refused', refusedFile, file];
  const lastOf = (wanted: Partial<ArchivedCall>) =>
    calls.findLastIndex(
      ({ type, userId, groupId }) =>
        wanted.type === type && (wanted.groupId === undefined ? wanted.userId === userId : wanted.groupId === groupId),
    );

  async function check(output: string): Promise<void> {
    const rejected = CALLS / 1_000;
    expect(output).toContain(`${(CALLS - rejected).toLocaleString('en')} calls were accepted`);
    expect(output).toContain(`${rejected} calls were refused`);
    const lines = (await readFile(refusedFile, 'utf8'))
      .trim()
      .split('\n')
      .sort((a, b) => Number.parseInt(a.slice(5), 10) - Number.parseInt(b.slice(5), 10));
    expect(lines).toEqual(
      Array.from(
        { length: rejected },
        (_, index) =>
          `line ${(index + 1) * 1_000}: invalid_call: type must be one of: track, identify, group, page, screen, alias.`,
      ),
    );
    await pipeline.settled(CALLS - rejected);
    await pipeline.drained();
    const sql = `SELECT count(), uniqExact(workspace_id, timestamp, uuid) FROM ${pipeline.database}.events FORMAT TSV`;
    expect(await readClickHouse(inject('clickhouseUrl'), sql)).toBe(`${CALLS - rejected}\t${CALLS - rejected}`);
    const users = Array.from({ length: USERS }, (_, index) => `u${index}`);
    expect(await lastChanges(pipeline, '/users', users)).toEqual(
      users.map((id) => lastOf({ type: 'identify', userId: id })),
    );
    const organizations = Array.from({ length: ORGANIZATIONS }, (_, index) => `o${index}`);
    expect(await lastChanges(pipeline, '/organizations', organizations)).toEqual(
      organizations.map((id) => lastOf({ type: 'group', groupId: id })),
    );
  }

  let imported = false;
  const importing = runImporter(args, pipeline.key).finally(() => {
    imported = true;
  });
  for (let kills = 0; kills < 2; kills += 1) {
    await delay(1_200);
    expect(imported, 'the import goes on while ingest-api is killed').toBe(false);
    await pipeline.services['ingest-api'].kill9();
    await pipeline.restart('ingest-api');
  }
  const first = await importing;
  expect(first.code, first.output).toBe(1);
  await check(first.output);

  const again = await runImporter(args, pipeline.key);
  expect(again.code, again.output).toBe(1);
  await check(again.output);
});

test('calls that are too large for the service keep no other call from being stored', async () => {
  await using folder = await makeTempDir();
  await using pipeline = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'toolarge',
  });
  const sizes = [10, 300_000, 10, 6_000_000, 10, 40_000_000, 10];
  const lines = sizes.map((size, index) => {
    const call = { type: 'track', event: 'Opened', userId: 'jane', messageId: `m-${index}` };
    return JSON.stringify({ ...call, timestamp: '2025-01-01T00:00:00Z', properties: { text: 'x'.repeat(size) } });
  });
  const file = join(folder.path, 'calls.ndjson');
  await writeFile(file, lines.join('\n'));
  const refusedFile = join(folder.path, 'refused.txt');
  const url = pipeline.services['ingest-api'].url;
  const { code, output } = await runImporter(
    ['--format', 'segment', '--url', url, '--refused', refusedFile, file],
    pipeline.key,
  );
  expect(code, output).toBe(1);
  expect(output).toContain('4 calls were accepted');
  expect((await readFile(refusedFile, 'utf8')).trim().split('\n').sort()).toEqual([
    expect.stringMatching(/^line 2: too_large: A call must be at most 262144 bytes/),
    expect.stringMatching(/^line 4: 413 body_too_large: /),
    expect.stringMatching(/^line 6: 413 body_too_large: /),
  ]);
  await pipeline.settled(4);
});
