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
    const { query, query_id = '', session_id, query_params = {}, clickhouse_settings = {} } = call;
    const { max_execution_time, receive_timeout } = clickhouse_settings;
    // SYNC REPLICA waits for the latter.
    const secondsMax = Number(max_execution_time ?? receive_timeout ?? TIMEOUT_MS / 1_000);
    const chunks: Uint8Array[] = [];
    for await (const chunk of call.values ?? []) chunks.push(chunk);
    const lines = Buffer.concat(chunks).toString().split('\n');
    const request = {
      name: nameOfStatement(query, query_id),
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
      return { summary: summaryOf(await send(call)), stream: [] };
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
