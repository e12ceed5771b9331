import { ArgumentsError } from '@sluice/shared/config/command-line';
import { parseCommand } from '../command/parse-command.ts';
import type { Terminal } from '../command/terminal.ts';
import type { PartitionGrowth, TopicGrowth } from './partition-growth.ts';

/** The most partitions that KAFKA_PARTITIONS takes. */
const PARTITIONS_MAX = 1_000;

export const GROW_PARTITIONS = 'grow-partitions';

export const GROW_PARTITIONS_HELP = `  ${GROW_PARTITIONS} N [--yes]
                                spreads rows over N partitions instead of fewer: adds partitions to the topics and
                                records N. It first checks that all ingest-apis and writers have stopped and everything
                                is stored, and lists what is not so. Kafka cannot remove partitions again. If it is
                                interrupted, run it again. Of several ClickHouse servers or replicas, all have to answer, and all
                                must have all partitions`;

/**
 * Runs `grow-partitions N`, and returns the exit code.
 *
 * @throws {GroupMismatch} when the database belongs to another group of writers
 * @throws kafkajs's and ClickHouse's errors, before anything is changed
 */
export async function growPartitions(
  { count, yes }: GrowthArguments,
  growth: PartitionGrowth,
  { print, confirm }: Terminal,
): Promise<number> {
  if (growth.refusal !== undefined) return stop(print, [growth.refusal]);
  const topics = await growth.state();
  const refusal = refuse(topics, count);
  if (refusal !== undefined) return stop(print, [refusal]);
  if (topics.every((topic) => isDone(topic, count))) {
    print(`Rows are spread over ${count} partitions already. Nothing was changed.`);
    return 0;
  }
  const obstacles = await growth.obstacles();
  if (obstacles.length > 0) return stop(print, obstacles);
  for (const { topic, inKafka, recorded } of topics) {
    print(`${topic}: rows are spread over ${recorded.join(' or ')} partitions, and Kafka has ${inKafka}`);
  }
  if (!yes && !(await confirm(`Spread rows over ${count} partitions? [y/N] `))) {
    print('Nothing was changed.');
    return 1;
  }
  // Something may have been started meanwhile.
  const newObstacles = yes ? [] : await growth.obstacles();
  if (newObstacles.length > 0) return stop(print, newObstacles);
  return await grow(topics, count, growth, print);
}

async function grow(
  topics: readonly TopicGrowth[],
  count: number,
  growth: PartitionGrowth,
  print: Terminal['print'],
): Promise<number> {
  try {
    for (const { topic, inKafka } of topics) {
      if (inKafka >= count) continue;
      await growth.createPartitions(topic, count);
      print(`${topic} has ${count} partitions in Kafka now`);
    }
    await growth.record(count, (server) => print(`${server} has recorded ${count} partitions`));
  } catch (error) {
    print(`This failed: ${(error as Error).message}`);
    print(
      `What is named above is changed; the rest is not, or not completely. Until \`${GROW_PARTITIONS} ${count}\` has run to its end, start nothing with KAFKA_PARTITIONS=${count}.`,
    );
    return 1;
  }
  const started = await growth.obstacles();
  for (const obstacle of started) print(`Meanwhile: ${obstacle}`);
  print(`Recorded in ClickHouse. Set KAFKA_PARTITIONS=${count} for all services, and start them. Then make a backup.`);
  return started.length === 0 ? 0 : 1;
}

function refuse(topics: readonly TopicGrowth[], count: number): string | undefined {
  const unknown = topics.filter(({ recorded }) => recorded.length === 0);
  if (unknown.length > 0) {
    const names = unknown.map(({ topic }) => topic).join(' and ');
    return `No writer has stored anything of ${names}: set KAFKA_PARTITIONS=${count} for all services instead.`;
  }
  const most = Math.max(...topics.flatMap(({ recorded }) => recorded));
  if (count >= most) return undefined;
  return `Rows are spread over ${most} partitions, which is more than ${count}. Their number can only grow.`;
}

function isDone({ inKafka, recorded }: TopicGrowth, count: number): boolean {
  return inKafka >= count && recorded.every((partitions) => partitions === count);
}

function stop(print: Terminal['print'], reasons: readonly string[]): number {
  for (const reason of reasons) print(reason);
  print('Nothing was changed.');
  return 1;
}

export interface GrowthArguments {
  readonly count: number;
  readonly yes: boolean;
}

/** @throws {ArgumentsError} */
export function parseGrowth(args: readonly string[]): GrowthArguments {
  const { operands, flags } = parseCommand(args, {
    commands: { [GROW_PARTITIONS]: 'one' },
    texts: {},
    flags: ['yes'],
    usage: `${GROW_PARTITIONS} needs the new number of partitions, and takes no option but --yes.`,
  });
  const count = Number(operands[0]);
  if (!/^\d+$/.test(operands[0] ?? '') || count < 2 || count > PARTITIONS_MAX) {
    throw new ArgumentsError(`N must be a whole number from 2 to ${PARTITIONS_MAX}.`);
  }
  return { count, yes: flags.yes };
}
