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

/**
 * Returns what an operator has to look after, each as a sentence; empty when nothing.
 *
 * @param before the reading before, if there was one
 */
export function attentionOf(pipeline: Pipeline, before: Pipeline | undefined): string[] {
  return [
    ...kafkaAttention(pipeline),
    ...writerAttention(pipeline, before),
    ...serverAttention(pipeline),
    ...clickHouseAttention(pipeline),
    ...serviceAttention(pipeline),
    ...deadLetterAttention(pipeline),
  ];
}

function kafkaAttention({ lag }: Pipeline): string[] {
  const found: string[] = [];
  if (lag && lag.seconds > LAG_SECONDS_MAX) {
    found.push(`Rows have been waiting in Kafka for ${formatDuration(lag.seconds)}.`);
  }
  if (lag && lag.headroomSeconds !== null && lag.headroomSeconds < HEADROOM_SECONDS_MIN) {
    found.push(`Kafka may delete rows that are not stored in ${formatDuration(lag.headroomSeconds)}.`);
  }
  return found;
}

function writerAttention({ writers }: Pipeline, before: Pipeline | undefined): string[] {
  if (!writers) return [];
  const found: string[] = [];
  const { haltedPartitions: halted, deadLetterAlarm } = writers;
  if (halted > 0) {
    found.push(`${formatNumber(halted)} ${halted === 1 ? 'partition is' : 'partitions are'} halted until resumed.`);
  }
  // A writer that has started again counts from 0.
  const failures = before?.writers ? writers.batchFailures - before.writers.batchFailures : 0;
  if (failures > 0) found.push('Batches fail and are retried; the log of the writer has the reason.');
  if (deadLetterAlarm) found.push('Many rows could not be stored in the last minutes; they are dead letters.');
  return found;
}

function serverAttention({ servers }: Pipeline): string[] {
  return servers.flatMap(({ name, readable, behindSeconds }) => {
    if (!readable) return [`The ClickHouse server ${name} cannot be read; the log of query-api has the reason.`];
    const isBehind = behindSeconds !== null && behindSeconds > BEHIND_SECONDS_MAX;
    return isBehind ? [`The ClickHouse server ${name} is ${formatDuration(behindSeconds)} behind Kafka.`] : [];
  });
}

function clickHouseAttention({ clickHouse, erasures }: Pipeline): string[] {
  const found: string[] = [];
  for (const { name, freeBytes, totalBytes } of clickHouse?.disks ?? []) {
    if (freeBytes < FREE_SHARE_MIN * totalBytes) {
      found.push(`The disk ${name} of ClickHouse has ${formatBytes(freeBytes)} left of ${formatBytes(totalBytes)}.`);
    }
  }
  const fullest = clickHouse?.fullestPartition;
  if (fullest && fullest.parts > PARTS_SHARE_MAX * fullest.partsLimit && fullest.partsLimit > 0) {
    const { table, parts, partsLimit } = fullest;
    found.push(
      `A partition of ${table} has ${formatNumber(parts)} parts; with ${formatNumber(partsLimit)} inserts are refused.`,
    );
  }
  if (erasures && erasures.oldestSeconds > erasures.deadlineSeconds) {
    found.push(`A deleted user has not been erased for ${formatDuration(erasures.oldestSeconds)}.`);
  }
  return found;
}

function serviceAttention({ keysFile }: Pipeline): string[] {
  return keysFile && !keysFile.valid ? ['The keys file cannot be used; the last valid keys stay in force.'] : [];
}

function deadLetterAttention({ deadLetters: { rejectedLastDay: rejected } }: Pipeline): string[] {
  if (rejected === 0) return [];
  return [
    `${formatCount(rejected, 'call')} ${rejected === 1 ? 'was' : 'were'} rejected in the last 24 hours; few clients say so.`,
  ];
}
