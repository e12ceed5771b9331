import { randomUUID } from 'node:crypto';
import { ComparedServer, STATEMENT_MS_MAX } from '@sluice/servers/compare/compared-server';
import { MENDED_TABLES } from '@sluice/servers/compare/compared-tables';
import { type Both, ofBoth, type Servers } from '@sluice/servers/compare/different-keys';
import { isEmpty, type MendingPlan, partitionCountOf, planMend, runMend } from '@sluice/servers/compare/mend';
import { MendedServer, REMOVE_MS_MAX } from '@sluice/servers/compare/mended-server';
import { type ComparisonPlan, planComparison } from '@sluice/servers/compare/plan-comparison';
import {
  type Comparison,
  type ComparisonProgress,
  NAMED_MAX,
  type NamedKey,
  runComparison,
} from '@sluice/servers/compare/run-comparison';
import { atServer, type ConfiguredServer, connectTo, type ServersConfig } from '@sluice/servers/state/connected-server';
import { createLogger } from '@sluice/shared/base/log';
import { sleep } from '@sluice/shared/base/retry';
import { unlessAborted } from '@sluice/shared/base/unless-aborted';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { ArgumentsError, Refused, readArguments } from '@sluice/shared/config/command-line';
import { createKafka } from '@sluice/shared/kafka/client';
import { topicNames } from '@sluice/shared/kafka/topics';
import { printable } from '@sluice/shared/text/printable';
import { readIdentity } from '@sluice/storage/clickhouse/identity';
import { parseCommand } from '../command/parse-command.ts';
import { inColumns, interruption, type Terminal } from '../command/terminal.ts';
import { reasonOf } from '../command/unreachable.ts';
import { findServer } from './chosen-server.ts';

export const COMPARE_HELP = `  compare NAME NAME [--mend [--yes]]
                        says whether two servers that store the same partitions have the same, while everything runs, and
                        names the first rows that differ
    --mend              gives each of them the events, users and organizations that the other one shows and it lacks. Broken
                        off at any point, it goes on when it is run again
    --yes               does not ask for confirmation`;

/** The names of the tables that are mended. */
const MENDED_NAMES = MENDED_TABLES.map(({ name }) => name);

/** How often it says how far it is, in milliseconds. */
const PROGRESS_MS = 2_000;

export interface CompareArguments {
  readonly configured: Both<ConfiguredServer>;
  readonly mends: boolean;
  readonly yes: boolean;
}

/** What a mending needs to know of the comparison before it. */
interface Mended {
  readonly config: ServersConfig;
  readonly plan: ComparisonPlan;
  readonly comparison: Comparison;
  readonly terminal: Terminal;
  readonly yes: boolean;
  readonly progress: Progress;
}

/** How far the command is. */
interface Progress {
  /** Returns a line that says so. Undefined: there is nothing to say. */
  say?: (() => Promise<string> | string) | undefined;
}

/** @throws {ArgumentsError} that names every error */
export function parseCompare(args: readonly string[], servers: readonly ConfiguredServer[]): CompareArguments {
  const usage = 'compare needs the NAMES of two servers.';
  const syntax = { commands: { compare: 'two' }, texts: {}, flags: ['mend', 'yes'], usage } as const;
  const { operands, flags } = parseCommand(args, syntax);
  const [one = '', other = ''] = operands;
  const found = readArguments({
    one: () => findServer('NAME', one, servers),
    other: () => findServer('NAME', other, servers),
    different: () => {
      if (one === other) throw new ArgumentsError('The two servers must not be the same.');
    },
    mend: () => {
      if (flags.yes && !flags.mend) throw new ArgumentsError('--yes needs --mend: nothing else is asked.');
    },
  });
  return { configured: [found.one, found.other], mends: flags.mend, yes: flags.yes };
}

/**
 * Compares two servers, prints what was found, records it at both, mends it if it is to, and returns the exit code: 1 when they
 * differ in what was not mended.
 */
export async function runCompareCommand(
  { configured, mends, yes }: CompareArguments,
  terminal: Terminal,
): Promise<number> {
  const [{ config }] = configured;
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
  let doing: 'compared' | 'mended' = 'compared';
  try {
    const plan = await planComparison(configured, clients);
    signal.addEventListener('abort', () => void ofBoth(servers, (server) => server.end()));
    const progress: Progress = {};
    void sayHowFar(progress, ended.signal);
    const onPart = (current: ComparisonProgress) => {
      progress.say = () => describePart(servers, current);
    };
    const comparison = await runComparison(servers, plan.cut, signal, onPart, mends);
    await requireUnchanged(names, clients, plan);
    await record(names, clients, plan, comparison);
    const code = printComparison(names, plan, comparison, terminal.print);
    if (!mends) return code;
    doing = 'mended';
    progress.say = () => 'mending: both servers read what differs';
    const mendedAt = (index: 0 | 1) => new MendedServer(names[index], connect(configured[index], REMOVE_MS_MAX), run);
    const mended = [mendedAt(0), mendedAt(1)] as const;
    const planned = planMend(servers, mended, comparison, plan.cut.until);
    const given = { config, plan, comparison, terminal, yes, progress };
    // What is broken off goes on when the command is run again.
    return await unlessAborted(
      signal,
      planned.then((mending) => mend(mended, mending, given)),
    );
  } catch (error) {
    console.error(
      `${signal.aborted ? 'Interrupted.' : reasonOf(error, doing === 'mended' ? undefined : 'ClickHouse')}\n` +
        `${names.join(' and ')} could not be ${doing}.${doing === 'mended' ? ' Run the command again.' : ''}`,
    );
    return signal.aborted ? 130 : 1;
  } finally {
    ended.abort();
  }
}

/** Says what is to be done, asks, does it, and returns the exit code. */
async function mend(
  servers: Both<MendedServer>,
  mending: MendingPlan,
  { config, plan, comparison, terminal, yes, progress }: Mended,
): Promise<number> {
  // Nothing is printed amid the question.
  progress.say = undefined;
  const others = comparison.parts.filter(({ table, isSame }) => !isSame && !MENDED_NAMES.includes(table));
  const code = others.length > 0 ? 1 : 0;
  if (isEmpty(mending)) {
    terminal.print('There is nothing to mend.');
    return code;
  }
  const partitionCount = partitionCountOf(plan.states, config);
  for (const line of describeMending(servers, mending)) terminal.print(line);
  if (!yes && !(await terminal.confirm('Mend? [y/N] '))) {
    terminal.print('nothing was changed');
    return 1;
  }
  const kafka = createKafka(config, 'sluice-servers', createLogger('sluice-servers', 'error'));
  await runMend(servers, mending, { kafka, topic: topicNames(config).events, partitionCount }, (step) => {
    progress.say = () => `mending: ${step}`;
  });
  terminal.print(
    'Mended. What was sent to Kafka is the same once both have stored it: compare them again in a minute.',
  );
  return code;
}

function describeMending(servers: Both<MendedServer>, { events: { send, remove }, entities }: MendingPlan): string[] {
  const [one, other] = servers.map(({ name }) => name);
  return [
    `${send.length.toLocaleString('en')} events are sent to Kafka again: ${one} or ${other} lacks them.`,
    ...servers.flatMap(({ name }, index) => [
      `${name} loses ${(remove[index] ?? []).length.toLocaleString('en')} events that repeat another one, and gets ` +
        `${(entities[index] ?? []).length.toLocaleString('en')} rows of users, organizations and memberships.`,
    ]),
  ];
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
  for (const one of firstOfEach(different)) print(printable(describeKey(names, one)));
  if (apartCount > 0) {
    print(
      `${apartCount.toLocaleString('en')} rows may differ: events that were sent again around the deletion of their first user, and ` +
        'what these name. They do not count. The first ones:',
    );
    for (const one of firstOfEach(apart)) print(printable(describeKey(names, one)));
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

/** Returns the first keys of each table. */
function firstOfEach(keys: readonly NamedKey[]): NamedKey[] {
  return [...Map.groupBy(keys, ({ table }) => table).values()].flatMap((some) => some.slice(0, NAMED_MAX));
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

/** Prints how far the command is, again and again until a signal aborts. Never throws. */
async function sayHowFar(progress: Progress, ended: AbortSignal): Promise<void> {
  for (;;) {
    await sleep(PROGRESS_MS, ended);
    if (ended.aborted) return;
    const line = await progress.say?.();
    if (line !== undefined && !ended.aborted) console.error(line);
  }
}

/** Says where the comparison is, and how many rows its statements have read. Never throws. */
async function describePart(servers: Servers, { part, done, all }: ComparisonProgress): Promise<string> {
  const [one, other] = await ofBoth(servers, (server) => server.readRows().catch(() => 0));
  const read = [one, other].map((rows, index) => `${servers[index]?.name} ${rows.toLocaleString('en')}`).join(', ');
  const what = `${part.table.name} ${monthOf(part.partition)}`.trim();
  return `${what}: rows read by ${read}; ${done} of ${all} parts done`;
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
