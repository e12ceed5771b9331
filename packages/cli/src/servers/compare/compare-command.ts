import { randomUUID } from 'node:crypto';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { ArgumentsError, readArguments } from '@sluice/shared/command-line';
import { printable } from '@sluice/shared/printable';
import { sleep } from '@sluice/shared/retry';
import { Refused } from '../../backup/refused.ts';
import { interruption } from '../../interruption.ts';
import { parseCommand } from '../../parse-command.ts';
import { inColumns, type Terminal } from '../../terminal.ts';
import { atServer } from '../at-server.ts';
import { type ConfiguredServer, connectTo } from '../connected-server.ts';
import { findServer } from '../find-server.ts';
import { readIdentity } from '../identity.ts';
import { reasonOf } from '../reason-of.ts';
import { ComparedServer, STATEMENT_MS_MAX } from './compared-server.ts';
import { type Both, ofBoth, type Servers } from './different-keys.ts';
import { type ComparisonPlan, planComparison } from './plan-comparison.ts';
import { type Comparison, type ComparisonProgress, type NamedKey, runComparison } from './run-comparison.ts';

export const COMPARE_HELP = `  compare NAME NAME     says whether two servers that store the same partitions have the same, while everything runs, and
                        names the first rows that differ`;

/** How often it says how far it is, in milliseconds. */
const PROGRESS_MS = 2_000;

/** @throws {ArgumentsError} that names every error */
export function parseCompare(args: readonly string[], servers: readonly ConfiguredServer[]): Both<ConfiguredServer> {
  const usage = 'compare needs the NAMES of two servers.';
  const { operands } = parseCommand(args, { commands: { compare: 'two' }, texts: {}, flags: [], usage });
  const [one = '', other = ''] = operands;
  const found = readArguments({
    one: () => findServer('NAME', one, servers),
    other: () => findServer('NAME', other, servers),
    different: () => {
      if (one === other) throw new ArgumentsError('The two servers must not be the same.');
    },
  });
  return [found.one, found.other];
}

/** Compares two servers, prints what was found, records it at both, and returns the exit code: 1 when they differ. */
export async function runCompareCommand(configured: Both<ConfiguredServer>, print: Terminal['print']): Promise<number> {
  const signal = interruption();
  await using connections = new AsyncDisposableStack();
  const connect = (server: ConfiguredServer, timeoutMs?: number) =>
    connections.adopt(connectTo(server, timeoutMs), (client) => client.close());
  const names = [configured[0].server.name, configured[1].server.name] as const;
  const clients = [connect(configured[0]), connect(configured[1])] as const;
  const run = randomUUID();
  const serverAt = (index: 0 | 1) =>
    new ComparedServer(names[index], clients[index], connect(configured[index], STATEMENT_MS_MAX), run);
  const servers: Servers = [serverAt(0), serverAt(1)];
  const ended = new AbortController();
  try {
    const plan = await planComparison(configured, clients);
    signal.addEventListener('abort', () => void ofBoth(servers, (server) => server.end()));
    const progress = { current: undefined as ComparisonProgress | undefined };
    void sayHowFar(servers, progress, ended.signal);
    const comparison = await runComparison(servers, plan.cut, signal, (current) => {
      progress.current = current;
    });
    await requireUnchanged(names, clients, plan);
    await record(names, clients, plan, comparison);
    return printComparison(names, plan, comparison, print);
  } catch (error) {
    console.error(
      `${signal.aborted ? 'Interrupted.' : reasonOf(error, 'ClickHouse')}\n${names.join(' and ')} could not be compared.`,
    );
    return signal.aborted ? 130 : 1;
  } finally {
    ended.abort();
  }
}

/** A server that is filled meanwhile has lost rows. @throws {Refused} */
async function requireUnchanged(
  names: Both<string>,
  clients: Both<ReturnType<typeof connectTo>>,
  { identities }: ComparisonPlan,
): Promise<void> {
  for (const [index, client] of clients.entries()) {
    const identity = await readIdentity(client);
    if (identity?.id === identities[index]?.id && identity?.state === 'complete') continue;
    throw new Refused(
      `${names[index]} is ${identity?.state ?? 'empty'}, or has another database, since the command began.`,
    );
  }
}

async function record(
  names: Both<string>,
  clients: Both<ReturnType<typeof connectTo>>,
  { cut }: ComparisonPlan,
  { parts }: Comparison,
): Promise<void> {
  const ofEvents = parts.filter(({ table }) => table === 'events');
  const differing = [...new Set(parts.filter(({ isSame }) => !isSame).map(({ table }) => table))];
  for (const index of [0, 1] as const) {
    const events = ofEvents.reduce((sum, { rows }) => sum + rows[index], 0);
    const outcome = { until: cut.until, months: ofEvents.length, differing, events };
    await atServer(names[index], () => recordComparison(clients[index], names[1 - index] ?? '', outcome));
  }
}

function printComparison(
  names: Both<string>,
  { cut }: ComparisonPlan,
  { parts, different, apart, apartCount }: Comparison,
  print: Terminal['print'],
): number {
  const rows = parts.map(({ table, partition, rows: [one, other], isSame }) => [
    ...[table, partition === '' ? '-' : monthOf(partition)],
    ...[one.toLocaleString('en'), other.toLocaleString('en'), isSame ? 'same' : 'differs'],
  ]);
  for (const line of inColumns([['table', 'month', ...names, ''], ...rows])) print(line);
  for (const one of different) print(printable(describeKey(names, one)));
  if (apartCount > 0) {
    print(
      `${apartCount.toLocaleString('en')} rows may differ: events that were sent again around the deletion of their first user, and ` +
        'what these name. They do not count. The first ones:',
    );
    for (const one of apart) print(printable(describeKey(names, one)));
  }
  const through = new Date(cut.until / 1_000).toISOString();
  const differing = parts.filter(({ isSame }) => !isSame);
  if (differing.length > 0) {
    const found = differing.map(({ table, partition }) =>
      partition === '' ? table : `${table} ${monthOf(partition)}`,
    );
    print(`They differ: ${found.join(', ')}.`);
    return 1;
  }
  const events = parts.filter(({ table }) => table === 'events').reduce((sum, part) => sum + part.rows[0], 0);
  print(`${names.join(' and ')} are the same: ${events.toLocaleString('en')} events through ${through}.`);
  return 0;
}

/** The name of a partition of the table `events`: a month, or a year of events that came late. */
function monthOf(partition: string): string {
  return partition.replace(/^(\d{4})(\d\d)$/, '$1-$2');
}

function describeKey(names: Both<string>, { table, key: { workspace, key, rows } }: NamedKey): string {
  const found = names.filter((_, index) => (rows[index] ?? []).length > 0);
  const has = found.length === 2 ? 'differs' : `only ${found[0]} has it`;
  return `  ${table} ${JSON.stringify([workspace, ...key])}: ${has}`;
}

/** Prints where the comparison is, and how many rows its statements have read, until a signal aborts. Never throws. */
async function sayHowFar(
  servers: Servers,
  progress: { readonly current: ComparisonProgress | undefined },
  ended: AbortSignal,
): Promise<void> {
  for (;;) {
    await sleep(PROGRESS_MS, ended);
    if (ended.aborted) return;
    if (!progress.current) continue;
    const { part, done, all } = progress.current;
    const [one, other] = await ofBoth(servers, (server) => server.readRows().catch(() => 0));
    const read = [one, other].map((rows, index) => `${servers[index]?.name} ${rows.toLocaleString('en')}`).join(', ');
    const what = `${part.table.name} ${monthOf(part.partition)}`.trim();
    if (!ended.aborted) console.error(`${what}: rows read by ${read}; ${done} of ${all} parts done`);
  }
}

const RECORD = `
INSERT INTO server_comparisons (compared_at, other, through, months, event_count, differing)
SELECT
  now64(3), {other:String}, fromUnixTimestamp64Micro({until:Int64}), {months:UInt32}, {events:UInt64}, {differing:Array(String)}`;

/** What a comparison with another server has found. */
interface Outcome {
  /** What was received later was left out, in microseconds since 1970. */
  readonly until: number;
  /** Partitions of the table `events`. */
  readonly months: number;
  /** The tables that differ. */
  readonly differing: readonly string[];
  /** How many events of the server were compared. */
  readonly events: number;
}

/** Records at a server what a comparison with another one has found, for its metrics. @throws ClickHouse's errors */
async function recordComparison(client: ClickHouseClient, other: string, outcome: Outcome): Promise<void> {
  await client.command({ query: RECORD, query_params: { other, ...outcome } });
}
