import { formatBytes, formatCount, formatDuration, formatNumber, type Pipeline } from '../base/base.ts';

/** Rows that wait for longer need attention, in seconds. */
const LAG_SECONDS_MAX = 60;
/** A ClickHouse server of several that is further behind needs attention, in seconds. */
const BEHIND_SECONDS_MAX = 300;
/** Rows that Kafka may delete sooner need attention, in seconds. */
const HEADROOM_SECONDS_MIN = 86_400;
/** A disk with a smaller share of free space needs attention. */
const FREE_SHARE_MIN = 0.1;
/** A partition with a larger share of the parts at which ClickHouse refuses inserts needs attention. Inserts are slower before. */
const PARTS_SHARE_MAX = 0.5;

/** What an operator has to look after. */
export interface Attention {
  /** What is wrong, as a sentence. */
  readonly found: string;
  /** What to do about it, as a sentence. */
  readonly remedy: string;
  /** The command that does it, or shows the reason. Default: there is none. */
  readonly command?: string;
}

/**
 * Returns what an operator has to look after, the most urgent first; empty when nothing.
 *
 * @param before the reading before, if there was one
 */
export function attentionOf(pipeline: Pipeline, before: Pipeline | undefined): Attention[] {
  return [
    ...kafkaAttention(pipeline),
    ...writerAttention(pipeline, before),
    ...serverAttention(pipeline),
    ...clickHouseAttention(pipeline),
    ...serviceAttention(pipeline),
    ...deadLetterAttention(pipeline),
  ];
}

/** Shows how far each partition is stored, and why one is halted. */
const STATUS = 'sluice writer status';

function kafkaAttention({ lag }: Pipeline): Attention[] {
  const found: Attention[] = [];
  if (lag && lag.headroomSeconds !== null && lag.headroomSeconds < HEADROOM_SECONDS_MIN) {
    found.push({
      found: `Kafka may delete rows that are not stored in ${formatDuration(lag.headroomSeconds)}.`,
      remedy: 'Give the topic a longer retention first, then find out why the writers are behind.',
      command: `kafka-configs.sh --bootstrap-server HOST:9092 --alter --entity-type topics --entity-name sluice.events \\
  --add-config retention.ms=1209600000`,
    });
  }
  if (lag && lag.seconds > LAG_SECONDS_MAX) {
    found.push({
      found: `Rows have been waiting in Kafka for ${formatDuration(lag.seconds)}.`,
      remedy:
        'Look at which partitions lag: start the writers that do not run, or more of them. A peak passes by itself.',
      command: STATUS,
    });
  }
  return found;
}

function writerAttention({ writers }: Pipeline, before: Pipeline | undefined): Attention[] {
  if (!writers) return [];
  const found: Attention[] = [];
  const { haltedPartitions: halted, deadLetterAlarm } = writers;
  if (halted > 0) {
    found.push({
      found: `${formatNumber(halted)} ${halted === 1 ? 'partition is' : 'partitions are'} halted until resumed.`,
      remedy: 'Read why, find out what happened to the data of Kafka or ClickHouse, then resume the partition.',
      command: STATUS,
    });
  }
  // A writer that has started again counts from 0.
  const failures = before?.writers ? writers.batchFailures - before.writers.batchFailures : 0;
  if (failures > 0) {
    found.push({
      found: 'Batches fail and are retried; the log of the writer has the reason.',
      remedy: 'Start ClickHouse if it does not respond; else give it the disk or the right that the log names.',
    });
  }
  if (deadLetterAlarm) {
    found.push({
      found: 'Many rows could not be stored in the last minutes; they are dead letters.',
      remedy: 'Correct the reason that they have, then replay them.',
      command: 'sluice dead-letters list',
    });
  }
  return found;
}

function serverAttention({ servers }: Pipeline): Attention[] {
  const command = 'sluice servers status';
  return servers.flatMap(({ name, readable, behindSeconds }): Attention[] => {
    if (!readable) {
      const found = `The ClickHouse server ${name} cannot be read; the log of query-api has the reason.`;
      return [{ found, remedy: 'Start it, or correct what keeps query-api from it.', command }];
    }
    if (behindSeconds === null || behindSeconds <= BEHIND_SECONDS_MAX) return [];
    const found = `The ClickHouse server ${name} is ${formatDuration(behindSeconds)} behind Kafka.`;
    return [{ found, remedy: 'Start its writers if none runs; else it catches up by itself.', command }];
  });
}

function clickHouseAttention({ clickHouse, erasures }: Pipeline): Attention[] {
  const found: Attention[] = [];
  for (const { name, freeBytes, totalBytes } of clickHouse?.disks ?? []) {
    if (freeBytes < FREE_SHARE_MIN * totalBytes) {
      found.push({
        found: `The disk ${name} of ClickHouse has ${formatBytes(freeBytes)} left of ${formatBytes(totalBytes)}.`,
        remedy: 'Enlarge it, keep events for fewer days, or shorten the logs of ClickHouse.',
        command: 'sluice retention list',
      });
    }
  }
  const fullest = clickHouse?.fullestPartition;
  if (fullest && fullest.parts > PARTS_SHARE_MAX * fullest.partsLimit && fullest.partsLimit > 0) {
    const { table, parts, partsLimit } = fullest;
    found.push({
      found: `A partition of ${table} has ${formatNumber(parts)} parts; with ${formatNumber(partsLimit)} inserts are refused.`,
      remedy: 'Let merges run, and end a mutation that fails.',
      command: 'SELECT * FROM system.mutations WHERE NOT is_done',
    });
  }
  if (erasures && erasures.oldestSeconds > erasures.deadlineSeconds) {
    found.push({
      found: `A deleted user has not been erased for ${formatDuration(erasures.oldestSeconds)}.`,
      remedy: 'Nobody can read it. Correct what the log of the writer names: disk space, a right, or another mutation.',
      command: 'SELECT * FROM system.mutations WHERE NOT is_done',
    });
  }
  return found;
}

function serviceAttention({ keysFile }: Pipeline): Attention[] {
  if (!keysFile || keysFile.valid) return [];
  return [
    {
      found: 'The keys file cannot be used; the last valid keys stay in force.',
      remedy: 'Restore the file from its copy; the command says what is wrong with it.',
      command: 'sluice keys list',
    },
  ];
}

function deadLetterAttention({ deadLetters: { rejectedLastDay: rejected } }: Pipeline): Attention[] {
  if (rejected === 0) return [];
  return [
    {
      found: `${formatCount(rejected, 'call')} ${rejected === 1 ? 'was' : 'were'} rejected in the last 24 hours; few clients say so.`,
      remedy: 'Open the dead letters: they say what is wrong, and can be sent again, changed where that is needed.',
    },
  ];
}
