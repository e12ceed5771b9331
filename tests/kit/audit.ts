import { type AuditOptions, runAudit } from '@sluice/cli/audit/run-audit';
import { WorkFolder } from '@sluice/cli/audit/work-folder';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { createLogger } from '@sluice/shared/base/log';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { clickHouseEnv, groupEnv, kafkaEnv, loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { topicNames } from '@sluice/shared/kafka/topics';
import { type PartitionRange, parseRange } from '@sluice/shared/servers/partition-range';
import { serverEnv } from '@sluice/shared/servers/server-config';
import { expect } from 'vitest';
import { z } from 'zod';
import type { Pipeline, PipelineServer } from './pipeline.ts';

const HOUR_MS = 3_600_000;

const schema = z.object({ ...kafkaEnv, ...clickHouseEnv, ...serverEnv, ...groupEnv });

/** The result of an audit, and the sums of its books by kind. */
export type Audited = NonNullable<Awaited<ReturnType<typeof runAudit>>>;

export type OnRow = NonNullable<AuditOptions['onRow']>;

type Count = keyof Audited['hours'][number]['counts'];

export interface AuditedPipeline extends Pick<Pipeline, 'environment'> {
  /** The variables of one of several servers. */
  readonly of?: Readonly<Record<string, string>>;
  readonly partitions?: string;
}

/** One of several servers of a pipeline. */
export function onServer(
  { environment }: Pick<Pipeline, 'environment'>,
  name: string,
  { url, partitions = '' }: PipelineServer,
): AuditedPipeline {
  const group = `${environment['KAFKA_GROUP_ID']}.${name}`;
  const of = { CLICKHOUSE_SERVERS_FILE: '', CLICKHOUSE_SERVER: '', CLICKHOUSE_URL: url, KAFKA_GROUP_ID: group };
  return { environment, of, partitions };
}

/**
 * Audits what a pipeline has received in the last hours, this one included: two hours from now, as it seems to it.
 *
 * @param options.work a folder of an audit that did not end
 */
export async function auditPipeline(
  { environment, of = {}, partitions = '' }: AuditedPipeline,
  options: {
    readonly work?: string;
    readonly workspace?: string;
    readonly share?: number;
    readonly shares?: number;
    readonly onRow?: OnRow;
    /** Complete audits: it goes on where they ended. */
    readonly before?: AuditOptions['before'];
  } = {},
): Promise<Audited> {
  await using folders = new AsyncDisposableStack();
  const {
    work = folders.use(await makeTempDir()).path,
    workspace = '',
    share = 1,
    shares = 1,
    onRow,
    before,
  } = options;
  const config = loadConfig(schema, { ...environment, ...of });
  const client = createClickHouse(config, { application: 'test', requestTimeoutMs: 60_000, connectionsMax: 2 });
  const range: PartitionRange | undefined = parseRange(partitions);
  const { CLICKHOUSE_URL, CLICKHOUSE_DATABASE, KAFKA_GROUP_ID: group } = config;
  const folder = new WorkFolder(work, [CLICKHOUSE_URL, CLICKHOUSE_DATABASE]);
  const nowMs = Date.now() + 2 * HOUR_MS;
  try {
    const result = await runAudit({
      ...{ client, kafka: createKafka(config, 'test', createLogger('test', 'silent')), group, range, folder },
      ...{ topics: topicNames(config), command: 'test', workspace, share, shares, rate: 0, nowMs },
      ...{ sinceMs: before ? undefined : nowMs - 5 * HOUR_MS, untilMs: undefined, before },
      signal: new AbortController().signal,
      ...(onRow && { onRow }),
      onProgress: () => undefined,
    });
    if (!result) throw new Error('there was nothing to audit');
    return result;
  } finally {
    folder.release();
    await client.close();
  }
}

/** Returns the sums of the books of a kind, without what is 0. */
export function sumsOf({ hours }: Audited, kind: string): Partial<Record<Count, number>> {
  const sums: Partial<Record<Count, number>> = {};
  for (const hour of hours.filter((one) => one.kind === kind)) {
    for (const [name, value] of Object.entries(hour.counts) as [Count, number][]) {
      if (value > 0) sums[name] = (sums[name] ?? 0) + value;
    }
  }
  return sums;
}

/** Returns the differences, each as `KIND of a kind: KEY`, in their order. */
export function differencesOf({ differences }: Audited): string[] {
  return differences.map(({ difference, kind, key }) => `${difference} of ${kind}: ${key}`).sort();
}

/** Expects that everything is accounted for. */
export async function expectBalanced(
  audited: AuditedPipeline,
  options: Parameters<typeof auditPipeline>[1] = {},
): Promise<Audited> {
  const books = await auditPipeline(audited, options);
  expect([books.differences, sumsOf(books, 'events').unknown]).toEqual([[], undefined]);
  return books;
}
