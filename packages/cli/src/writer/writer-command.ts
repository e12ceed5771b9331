import { createLogger } from '@sluice/shared/base/log';
import { sleep } from '@sluice/shared/base/retry';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { type ClickHouseConfig, clickHouseEnv, groupEnv, kafkaEnv } from '@sluice/shared/config';
import { ArgumentsError } from '@sluice/shared/config/command-line';
import { createKafka } from '@sluice/shared/kafka/client';
import { topicNames } from '@sluice/shared/kafka/topics';
import { describeRange } from '@sluice/shared/servers/partition-range';
import { serverEnv } from '@sluice/shared/servers/server-config';
import { GroupMismatch } from '@sluice/storage/clickhouse/claim-database';
import { isNothingStored } from '@sluice/storage/protocol/log-gap';
import { nameOf } from '@sluice/storage/protocol/position';
import { z } from 'zod';
import type { Command, Environment } from '../command/command.ts';
import { withLocalSystem } from '../command/local-system.ts';
import { parseCommand } from '../command/parse-command.ts';
import { inColumns, processTerminal, type Terminal } from '../command/terminal.ts';
import { unreachable } from '../command/unreachable.ts';
import { loadAllServers, loadChosenServer, loadServersOf, refuseShared } from '../servers/chosen-server.ts';
import { GROW_PARTITIONS, GROW_PARTITIONS_HELP, growPartitions, parseGrowth } from './grow-partitions.ts';
import { PartitionGrowth } from './partition-growth.ts';
import { messagesGivenUp, type PartitionStatus, Partitions, whatIsGivenUp } from './partitions.ts';

const APPLICATION = 'sluice-writer-command';

/**
 * How long running writers take to follow a halt, in milliseconds. The command ends after it: a writer that had not seen the halt
 * before it is resumed would go on where it was, whatever the operator chooses.
 */
const FOLLOWED_AFTER_MS = 2_000;

const configSchema = z.object({ ...kafkaEnv, ...clickHouseEnv, ...serverEnv, ...groupEnv });

/** Shows, halts and resumes the partitions of the writers, and adds more, with the environment of a writer. */
export const writerCommand: Command = {
  help,
  async run(args, { env }) {
    const local = await withLocalSystem(env);
    if (args[0] === GROW_PARTITIONS) return await runGrowPartitions(args, local);
    const parsed = parse(args);
    const { server } = parsed.texts;
    // Each server is looked at, or one of them is changed.
    const chosen =
      parsed.command === 'status'
        ? loadServersOf(configSchema, local, server)
        : [loadChosenServer(configSchema, local, server)];
    let code = 0;
    for (const { config, server: of } of chosen) {
      if (chosen.length > 1) processTerminal.print(`server ${of?.name}`);
      await using connected = connect(config);
      code = Math.max(
        code,
        await orReported(config, () => runWriterCommand(parsed, connected.partitions, processTerminal)),
      );
    }
    return code;
  },
};

async function runGrowPartitions(args: readonly string[], env: Environment): Promise<number> {
  const parsed = parseGrowth(args);
  refuseShared(env, 'writer grow-partitions', 'Choose KAFKA_PARTITIONS for good.');
  const servers = loadAllServers(configSchema, env);
  const [first] = servers;
  if (!first) throw new Error('there is no server');
  await using connections = new AsyncDisposableStack();
  const databases = servers.map(({ config, server }) => {
    const { client, partitions } = connections.use(connect(config));
    const range = describeRange(server?.partitions);
    return { name: server?.name, groupId: config.KAFKA_GROUP_ID, range, client, partitions };
  });
  const { config } = first;
  const kafka = createKafka(config, APPLICATION, createLogger(APPLICATION, 'error'));
  const growth = new PartitionGrowth(kafka, config, databases);
  return await orReported(servers.length === 1 ? config : undefined, () =>
    growPartitions(parsed, growth, processTerminal),
  );
}

function connect(config: z.output<typeof configSchema>) {
  const options = { application: APPLICATION, requestTimeoutMs: 60_000, connectionsMax: 2 };
  const client = createClickHouse(config, options);
  const kafka = createKafka(config, APPLICATION, createLogger(APPLICATION, 'error'));
  const partitions = new Partitions(kafka, client, config.KAFKA_GROUP_ID, Object.values(topicNames(config)));
  return { client, partitions, [Symbol.asyncDispose]: () => client.close() };
}

/** Returns the exit code of `work`: 1 when it throws, after it has said why on standard error. @throws {ArgumentsError} */
async function orReported(config: ClickHouseConfig | undefined, work: () => Promise<number>): Promise<number> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ArgumentsError) throw error;
    const isMismatch = error instanceof GroupMismatch;
    console.error(
      isMismatch ? `Nothing is done: ${error.message}.` : unreachable('Kafka or ClickHouse', error, config),
    );
    return 1;
  }
}

function help(name: string): string {
  return `Usage: ${name} COMMAND

Shows, halts and resumes the Kafka partitions that the writers store, and adds more. Running writers follow within two
seconds, for which halt waits.

  status                        shows each partition: what Kafka holds, what is stored, what is halted and why
  halt PARTITION [...]          stops storing partitions, such as sluice.events/3, until they are resumed
  halt --all                    stops storing all of them
  resume PARTITION [...] --from WHERE [--yes]
  resume --all --from WHERE [--yes]
                                says what is given up, asks for confirmation, and resumes halted partitions
    --from oldest               at the oldest message that Kafka has; rows that are stored already are not stored again
    --from stored               after the last stored message
    --from OFFSET               at this offset, of one partition
${GROW_PARTITIONS_HELP}
    --yes                       does it without confirmation
    --server NAME               which ClickHouse server, where CLICKHOUSE_SERVERS_FILE names several; default
                                CLICKHOUSE_SERVER. Without it, status shows all of them. Resuming gives up messages of
                                this server only, which is read as a last resort from then on: "sluice servers"

Exit codes: 0 done, 1 not done, 2 wrong arguments.`;
}

const USAGE =
  'Use status, halt, resume or grow-partitions; halt and resume need partitions or --all, and --from belongs to resume.';

/**
 * Runs the command on one ClickHouse server, and returns the exit code.
 *
 * @throws {ArgumentsError} before anything is done
 * @throws {GroupMismatch} when the database belongs to another group of writers
 * @throws kafkajs's and ClickHouse's errors
 */
export async function runWriterCommand(
  parsed: WriterArguments,
  partitions: Partitions,
  terminal: Terminal,
): Promise<number> {
  const all = await partitions.list();
  if (parsed.command === 'status') return printStatus(all, terminal);
  const chosen = parsed.all ? all : parsed.operands.map((name) => findPartition(name, all));
  if (parsed.command === 'halt') {
    const active = chosen.filter(({ halt }) => !halt);
    for (const { topic, partition } of active) await partitions.halt(topic, partition);
    if (active.length > 0) await sleep(FOLLOWED_AFTER_MS);
    for (const status of chosen) terminal.print(`${nameOf(status)} is halted`);
    return 0;
  }
  const options = { all: parsed.all, from: parsed.texts.from, yes: parsed.flags.yes };
  return await resume(chosen, options, partitions, terminal);
}

function printStatus(all: readonly PartitionStatus[], { print }: Terminal): number {
  const rows = all.map((status) => [
    nameOf(status),
    String(status.low),
    String(status.high),
    String(status.stored ?? '-'),
    String(status.committed ?? '-'),
    String(behind(status)),
    status.halt ? `halted: ${status.halt.reason}` : 'active',
  ]);
  const header = ['partition', 'oldest', 'end', 'stored', 'committed', 'behind', 'state'];
  for (const line of inColumns([header, ...rows])) print(line);
  for (const { halt } of all) if (halt) print(`halted since ${halt.haltedAt}: ${halt.detail}`);
  return 0;
}

/** Returns how many messages of the log are not stored. */
function behind({ low, high, stored, committed, halt }: PartitionStatus): bigint {
  const next = isNothingStored(halt) ? low : (committed ?? stored ?? low);
  if (next >= high) return 0n;
  return high - (next < low ? low : next);
}

async function resume(
  chosen: readonly PartitionStatus[],
  { from, yes, all }: ResumeOptions,
  partitions: Partitions,
  { print, confirm }: Terminal,
): Promise<number> {
  const halted = chosen.filter(({ halt }) => halt);
  for (const status of chosen) if (!all && !status.halt) print(`${nameOf(status)} is not halted`);
  if (halted.length === 0) {
    if (all) print('nothing is halted');
    return 1;
  }
  const plans = halted.map((status) => ({ status, offset: offsetFor(status, from) }));
  for (const { status, offset } of plans) {
    const { low, high } = status;
    if (offset < low || offset > high) {
      print(
        `${nameOf(status)} cannot be resumed at offset ${offset}: its log holds the offsets from ${low} up to ${high}`,
      );
      return 1;
    }
    print(`${nameOf(status)} resumes at offset ${offset}. ${whatIsGivenUp(status, offset)}`);
  }
  if (!yes && !(await confirm('Resume? [y/N] '))) {
    print('nothing was resumed');
    return 1;
  }
  // Before they are: if this ends in between, nothing is taken for complete that is not.
  const lost = plans.map(({ status, offset }) => messagesGivenUp(status, offset)).filter((text) => text !== undefined);
  const incomplete = lost.length > 0 ? await partitions.recordIncomplete(lost.join(' ')) : undefined;
  for (const { status, offset } of plans) {
    const goesOnWhereItWas = status.halt?.reason === 'by hand' && from === 'stored';
    await partitions.resume(status, goesOnWhereItWas ? undefined : offset);
    print(`${nameOf(status)} is resumed`);
  }
  if (incomplete !== undefined) {
    print(
      `${incomplete} is incomplete now: it is read only where no other server can be. Copy another server to it, or accept ` +
        'that the messages are gone: "sluice servers" does both.',
    );
  }
  return 0;
}

function offsetFor({ low, stored, committed }: PartitionStatus, from: string): bigint {
  if (from === 'oldest') return low;
  return from === 'stored' ? (stored ?? committed ?? low) : BigInt(from);
}

function findPartition(name: string, all: readonly PartitionStatus[]): PartitionStatus {
  const found = all.find((status) => nameOf(status) === name);
  if (found) return found;
  throw new ArgumentsError(`There is no partition ${name}; "status" lists them.`);
}

interface ResumeOptions {
  readonly all: boolean;
  /** `oldest`, `stored` or an offset. */
  readonly from: string;
  readonly yes: boolean;
}

export type WriterArguments = ReturnType<typeof parse>;

/** @throws {ArgumentsError} */
export function parse(args: readonly string[]) {
  const parsed = parseCommand(args, {
    commands: { status: 'none', halt: 'some, or --all', resume: 'some, or --all' },
    texts: { from: '', server: '' },
    flags: ['yes'],
    usage: USAGE,
  });
  const { command, operands, texts } = parsed;
  if (command === 'resume') {
    if (!/^(oldest|stored|\d{1,18})$/.test(texts.from)) {
      throw new ArgumentsError('--from must be oldest, stored or an offset.');
    }
    if (/^\d/.test(texts.from) && operands.length !== 1) {
      throw new ArgumentsError('--from OFFSET resumes exactly one partition; use oldest or stored for several.');
    }
  } else if (texts.from !== '') throw new ArgumentsError(USAGE);
  return parsed;
}
