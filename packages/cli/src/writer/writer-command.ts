import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { ArgumentsError } from '@sluice/shared/command-line';
import { clickHouseEnv, kafkaEnv, loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { topicNames } from '@sluice/shared/kafka/topics';
import { createLogger } from '@sluice/shared/log';
import { GroupMismatch } from '@sluice/writer/clickhouse/claim-database';
import { groupEnv } from '@sluice/writer/config';
import { isNothingStored } from '@sluice/writer/protocol/log-gap';
import { nameOf } from '@sluice/writer/protocol/position';
import { z } from 'zod';
import type { Command } from '../command.ts';
import { withLocalSystem } from '../local-system.ts';
import { parseCommand } from '../parse-command.ts';
import { inColumns, processTerminal, type Terminal } from '../terminal.ts';
import { whatIsGivenUp } from './given-up.ts';
import { type PartitionStatus, Partitions } from './partitions.ts';

const APPLICATION = 'sluice-writer-command';

/** Shows, halts and resumes the partitions of the writers, with the environment of a writer. */
export const writerCommand: Command = {
  help,
  async run(args, { env }) {
    const schema = z.object({ ...kafkaEnv, ...clickHouseEnv, ...groupEnv });
    const config = loadConfig(schema, await withLocalSystem(env));
    const client = createClickHouse(config, {
      application: APPLICATION,
      requestTimeoutMs: 60_000,
      connectionsMax: 2,
    });
    const kafka = createKafka(config, APPLICATION, createLogger(APPLICATION, 'error'));
    const partitions = new Partitions(kafka, client, config.KAFKA_GROUP_ID, Object.values(topicNames(config)));
    try {
      return await runWriterCommand(args, partitions, processTerminal);
    } catch (error) {
      if (error instanceof ArgumentsError) throw error;
      if (error instanceof GroupMismatch) {
        console.error(`Nothing is done: ${error.message}.`);
        return 1;
      }
      const reason = (error as Error).message || (error as NodeJS.ErrnoException).code;
      console.error(
        `Kafka or ClickHouse cannot be reached (${reason}). Is Sluice running at ${config.CLICKHOUSE_URL}?`,
      );
      return 1;
    } finally {
      await client.close();
    }
  },
};

function help(name: string): string {
  return `Usage: ${name} COMMAND

Shows, halts and resumes the Kafka partitions that the writers store. Running writers follow within two seconds.

  status                        shows each partition: what Kafka holds, what is stored, what is halted and why
  halt PARTITION [...]          stops storing partitions, such as sluice.events/3, until they are resumed
  halt --all                    stops storing all of them
  resume PARTITION [...] --from WHERE [--yes]
  resume --all --from WHERE [--yes]
                                says what is given up, asks for confirmation, and resumes halted partitions
    --from oldest               at the oldest message that Kafka has; rows that are stored already are not stored again
    --from stored               after the last stored message
    --from OFFSET               at this offset, of one partition
    --yes                       resumes without confirmation

Exit codes: 0 done, 1 not done, 2 wrong arguments.`;
}

const USAGE = 'Use status, halt or resume; halt and resume need partitions or --all, and --from belongs to resume.';

/**
 * Runs the command, and returns the exit code.
 *
 * @throws {ArgumentsError} before anything is done
 * @throws {GroupMismatch} when the database belongs to another group of writers
 * @throws kafkajs's and ClickHouse's errors
 */
export async function runWriterCommand(
  args: readonly string[],
  partitions: Partitions,
  terminal: Terminal,
): Promise<number> {
  const parsed = parse(args);
  const all = await partitions.list();
  if (parsed.command === 'status') return printStatus(all, terminal);
  const chosen = parsed.all ? all : parsed.operands.map((name) => findPartition(name, all));
  if (parsed.command === 'halt') {
    for (const { topic, partition, halt } of chosen) {
      if (!halt) await partitions.halt(topic, partition);
      terminal.print(`${nameOf({ topic, partition })} is halted`);
    }
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
  for (const { status, offset } of plans) {
    const { topic, partition, halt } = status;
    const goesOnWhereItWas = halt?.reason === 'by hand' && from === 'stored';
    await partitions.resume(topic, partition, goesOnWhereItWas ? undefined : offset);
    print(`${nameOf(status)} is resumed`);
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

function parse(args: readonly string[]) {
  const parsed = parseCommand(args, {
    commands: { status: 'none', halt: 'some, or --all', resume: 'some, or --all' },
    texts: { from: '' },
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
