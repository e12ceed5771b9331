import { buffer } from 'node:stream/consumers';
import { ClickHouseError, type ClickHouseSettings } from '@clickhouse/client';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { isRowError } from '@sluice/writer/batch/isolate-bad-rows';
import { nameOfStatement } from '../clickhouse/simulated-client.ts';

/** The response of a statement got lost; the statement has ended. */
export class ResponseLost extends Error {
  override readonly name = 'ResponseLost';
}

export interface FlakyClient {
  readonly client: ClickHouseClient;
  /** What each statement was asked and has answered, as text that is the same for the same answers. */
  readonly answers: string[];
  /** Loses the response of the statement after so many others. */
  loseResponseAfter(statements: number): void;
}

interface Call {
  readonly query: string;
  readonly query_id?: string;
  readonly session_id?: string;
  readonly clickhouse_settings?: ClickHouseSettings;
}

/** How long a session is kept, in seconds, so that none ends because the machine is busy. ClickHouse allows no more. */
const SESSION_TIMEOUT_SECONDS = 3_600;

function patient<Given extends Call>(call: Given): Given {
  // The client's types do not know session_timeout: it is a parameter of the HTTP interface, sent like a setting.
  const longer = { session_timeout: SESSION_TIMEOUT_SECONDS } as unknown as ClickHouseSettings;
  return { ...call, clickhouse_settings: { ...call.clickhouse_settings, ...longer } };
}

/** Wraps a client, notes what it is answered, and may lose a response. */
export function flakyClient(client: ClickHouseClient): FlakyClient {
  const answers: string[] = [];
  let left = Number.MAX_SAFE_INTEGER;

  async function noting<Answer>(
    { query, query_id }: Call,
    ask: () => Promise<Answer>,
    describe: (answer: Answer) => unknown,
  ): Promise<Answer> {
    const name = nameOfStatement(query, query_id);
    let answer: Answer;
    try {
      answer = await ask();
    } catch (error) {
      answers.push(`${name}: ${refusalOf(error)}`);
      throw error;
    }
    answers.push(`${name}: ${describe(answer)}`);
    left -= 1;
    if (left >= 0) return answer;
    left = Number.MAX_SAFE_INTEGER;
    throw new ResponseLost(`the response of ${name} is lost`);
  }

  const methods = {
    command: (call: Call) =>
      noting(
        call,
        () => client.command(patient(call)),
        ({ summary }) => isLookUp(call) && summary?.written_rows !== '0',
      ),
    async exec(call: Call) {
      const send = async () => {
        const { stream, summary } = await client.exec(patient(call));
        return { bytes: await buffer(stream), summary };
      };
      const answer = await noting(call, send, ({ bytes, summary }) => described(call, bytes, summary?.written_rows));
      return { stream: [answer.bytes], summary: answer.summary };
    },
    async query(call: Call & { readonly format: 'JSONEachRow' }) {
      const read = async () => await (await client.query(patient(call))).json();
      const describe = (found: readonly unknown[]) => {
        const known = found.map((row) => JSON.stringify(comparable(row)));
        return isOrdered(call) ? known : known.sort();
      };
      const rows = await noting(call, read, describe);
      return { json: async () => rows };
    },
  };
  return {
    client: methods as unknown as ClickHouseClient,
    answers,
    loseResponseAfter(statements) {
      left = statements;
    },
  };
}

/** Returns what rows a response has, or how many were loaded in a session. */
function described(call: Call, bytes: Buffer, written: string | undefined): unknown {
  switch ((call.clickhouse_settings as Readonly<Record<string, unknown>> | undefined)?.['default_format']) {
    case 'JSONEachRow': {
      const lines = bytes.toString().split('\n').slice(0, -1);
      const known = lines.map((line) => JSON.stringify(comparable(JSON.parse(line))));
      return isOrdered(call) ? known : known.sort();
    }
    case 'Native':
      // The next statements say what was in them.
      return 'rows';
    default:
      return call.session_id === undefined ? 'stored' : written;
  }
}

/** How many rows others have written concerns nobody. */
function isLookUp({ query }: Call): boolean {
  return ['find-repeats', 'find-stamped-repeats'].includes(nameOfStatement(query));
}

/** Rows of a statement without ORDER BY come in any order, and so do the stored events of read-possible-repeats. */
function isOrdered({ query, query_id }: Call): boolean {
  return /^ORDER BY/m.test(query) && nameOfStatement(query, query_id) !== 'read-possible-repeats';
}

/** Without what no two servers have in common: times of storage, and the order of what has none. */
function comparable(row: unknown): object {
  const { stored_ms: _stored, haltedAt: _halted, leaderIds, ...rest } = row as Record<string, unknown>;
  const leaders = leaderIds === undefined ? {} : { leaderIds: [...(leaderIds as string[])].sort() };
  const known = Object.entries({ ...rest, ...leaders }).map(([name, value]) => [name, value ?? null]);
  return Object.fromEntries(known.sort());
}

function refusalOf(error: unknown): string {
  if (isRowError(error)) return 'refused because of a row';
  if (error instanceof ClickHouseError) return `refused with ${error.type}`;
  return (error as Error).message;
}
