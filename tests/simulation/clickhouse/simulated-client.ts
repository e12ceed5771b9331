import type { ClickHouseSettings } from '@clickhouse/client';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { pinnedSettings } from '@sluice/shared/clickhouse/settings';
import { REPLICA_STATEMENTS } from '@sluice/storage/clickhouse/replicas';
import { STATEMENTS, type Statement } from '@sluice/storage/clickhouse/statements';
import { REPLAY_STATEMENTS } from '@sluice/storage/dead-letters';
import { NUMBERED_ROWS } from '@sluice/writer/batch/staging-tables';
import { STATEMENTS as BATCH_STATEMENTS } from '@sluice/writer/batch/statements';
import { STATEMENTS as ERASURE_STATEMENTS } from '@sluice/writer/erasure/statements';
import type { Network } from '../world/network.ts';
import { partsOf } from './carried-rows.ts';
import type { Address } from './simulated-clickhouse.ts';
import type { Result } from './statements.ts';

/** What the client of ClickHouse is called with, as far as the writer does. */
interface ClientCall {
  readonly query: string;
  readonly query_id?: string;
  readonly session_id?: string;
  readonly query_params?: Readonly<Record<string, unknown>>;
  readonly clickhouse_settings?: ClickHouseSettings & {
    readonly close_session?: number;
    readonly session_check?: number;
  };
  readonly values?: AsyncIterable<Uint8Array>;
  readonly http_headers?: Readonly<Record<string, string>>;
}

const NAMES = new Map([
  ...Object.values<Statement>({
    ...STATEMENTS,
    ...BATCH_STATEMENTS,
    ...ERASURE_STATEMENTS,
    ...REPLAY_STATEMENTS,
  }).map(({ name, sql }) => [sql, name] as const),
  ...REPLICA_STATEMENTS.map(({ name, sql }) => [sql, name] as const),
  ...Object.values(NUMBERED_ROWS).flatMap(({ create, load, loadSkipping, readLoaded }) => [
    ...[create, load, readLoaded].map(({ name, sql }) => [sql, name] as const),
    [loadSkipping.sql, `${loadSkipping.name}-skipping`] as const,
  ]),
]);

/** Returns the name of a statement of the writer, or of a replay: by its id where its text is made for a batch; its text when it has none. */
export function nameOfStatement(sql: string, queryId = ''): string {
  return NAMES.get(sql) ?? (queryId.split('/').at(-2) || sql);
}

/** How long a statement without a limit of its own may take, in milliseconds. */
const TIMEOUT_MS = 3_600_000;

/** How often ClickHouse tries in another session of Keeper what an insert could not in one, unless told otherwise. */
const KEEPER_RETRIES = 20;

/**
 * Creates a client of what answers at an address of ClickHouse, for the methods that the writer calls.
 *
 * @param settings of each request. Default: those that decide what our statements mean
 */
export function createSimulatedClient(
  clickhouse: Address,
  network: Network,
  requestTimeoutMs: number,
  settings: ClickHouseSettings = pinnedSettings,
): ClickHouseClient {
  const insertSettings = {
    quorum: Number(settings.insert_quorum ?? 0),
    quorumTimeoutMs: settings.insert_quorum_timeout ?? TIMEOUT_MS,
    // ClickHouse does unless told otherwise.
    deduplicates: String(settings.insert_deduplicate ?? 1) === '1',
  };

  async function send(call: ClientCall): Promise<Result> {
    const { query, query_id = '', session_id, query_params = {} } = call;
    const clickhouse_settings: ClientCall['clickhouse_settings'] = { ...settings, ...call.clickhouse_settings };
    const { max_execution_time, receive_timeout } = clickhouse_settings;
    // SYNC REPLICA waits for the latter.
    const secondsMax = Number(max_execution_time ?? receive_timeout ?? TIMEOUT_MS / 1_000);
    const chunks: Uint8Array[] = [];
    for await (const chunk of call.values ?? []) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const form = call.http_headers?.['Content-Type'];
    const tables = form === undefined ? [] : partsOf(body, form);
    const rows = form === undefined ? body : tables.find(({ name }) => name === 'sent_rows')?.bytes;
    const lines = rows?.toString().split('\n') ?? [];
    const skips = form !== undefined && String(clickhouse_settings.input_format_allow_errors_num ?? 0) !== '0';
    const isOperators = query.includes('{incarnation:UInt32} > 0') && query_params['incarnation'] === 0;
    const request = {
      name: `${nameOfStatement(query, query_id)}${skips ? '-skipping' : ''}`,
      queryId: query_id,
      sessionId: session_id,
      parameters: query_params,
      lines: lines.map((line) => line.trim()).filter((line) => line !== ''),
      timeoutMs: secondsMax * 1_000,
      closesSession: clickhouse_settings.close_session === 1,
      goesOn: clickhouse_settings.session_check === 1,
      // Its text says it, so that a statement that forgets to is none that the simulator refuses.
      namesServer: query.includes('{server:String} NOT IN'),
      insertSettings,
      tables,
      looksAt: {
        epoch:
          query.includes('FROM writer_epochs') && query.includes('a newer epoch owns the partitions') && !isOperators,
        ended: query.includes('FROM ended_batches'),
        replica: query.includes('FROM writer_replicas') && query.includes('throwIf'),
      },
      isConsistent: String(clickhouse_settings.select_sequential_consistency) === '1',
      keeperRetries: Number(clickhouse_settings.insert_keeper_max_retries ?? KEEPER_RETRIES),
      needsAll: query.includes('ON CLUSTER')
        ? clickhouse_settings.distributed_ddl_output_mode === 'throw'
        : String(clickhouse_settings.skip_unavailable_shards) === '0',
    };
    return await network.request(
      clickhouse.name,
      request.name,
      async () => {
        if (!clickhouse.isUp) throw new Error('connect ECONNREFUSED');
        return await clickhouse.run(request);
      },
      requestTimeoutMs,
    );
  }

  const summaryOf = ({ written }: Result) => ({ written_rows: String(written ?? 0) });
  const client = {
    async command(call: ClientCall) {
      return { summary: summaryOf(await send(call)) };
    },
    async exec(call: ClientCall) {
      const result = await send(call);
      const { blocks, rows = [] } = result;
      const stream = blocks ? [blocks] : rows.map((row) => Buffer.from(`${JSON.stringify(row)}\n`));
      return { summary: summaryOf(result), stream };
    },
    async query(call: ClientCall) {
      const { rows = [] } = await send(call);
      return { json: async () => rows };
    },
    async ping() {
      return { success: clickhouse.isUp };
    },
    async close() {},
  };
  return client as unknown as ClickHouseClient;
}
