import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { inherited } from '@sluice/shared/testing/inherited';
import { programFile } from '@sluice/shared/testing/program-file';

/** A record batch in a segment of a log. */
interface LogBatch {
  /** Where it begins in the file. */
  readonly at: number;
  readonly firstOffset: bigint;
  readonly lastOffset: bigint;
  readonly bytes: Buffer;
}

/** What a log has lost. */
export interface CutOff {
  /** The first offset that is gone. */
  readonly fromOffset: bigint;
  readonly batches: readonly LogBatch[];
}

/** Offset and length; the length counts what follows it. */
const BATCH_HEADER_BYTES = 12;

/** Where the offset of a batch's last record stands, counted from that of its first. */
const LAST_OFFSET_DELTA_AT = 23;

/**
 * Cuts the newest record batches off a partition's log, the same ones at every broker, as if all disks had lost their
 * last writes. The brokers must be down; when they start they take the logs as they find them. One batch stays at least.
 */
export async function cutOffLog(
  kafkaDir: string,
  brokers: number,
  partition: string,
  count: number,
): Promise<CutOff | undefined> {
  const folders = Array.from({ length: brokers }, (_, index) =>
    join(kafkaDir, `broker-${index + 1}`, 'log', partition),
  );
  const segments = await Promise.all(folders.map(newestSegment));
  const logs = await Promise.all(segments.map(async (segment) => batchesOf(await readFile(segment))));
  // The log that has least says what all of them have.
  const shortest = logs.reduce((least, log) => (log.length < least.length ? log : least));
  const from = shortest.at(-Math.min(count, shortest.length - 1));
  if (shortest.length < 2 || !from) return undefined;
  let lost: readonly LogBatch[] = [];
  for (const [index, segment] of segments.entries()) {
    const gone = (logs[index] ?? []).filter(({ firstOffset }) => firstOffset >= from.firstOffset);
    const [first] = gone;
    if (!first) continue;
    await truncate(segment, first.at);
    for (const kind of ['index', 'timeindex']) await rm(segment.replace(/log$/, kind), { force: true });
    if (gone.length > lost.length) lost = gone;
  }
  return { fromOffset: from.firstOffset, batches: lost };
}

async function newestSegment(folder: string): Promise<string> {
  const names = (await readdir(folder)).filter((name) => /^\d{20}\.log$/.test(name)).sort();
  const newest = names.at(-1);
  if (newest === undefined) throw new Error(`there is no log in ${folder}`);
  return join(folder, newest);
}

function batchesOf(bytes: Buffer): LogBatch[] {
  const batches: LogBatch[] = [];
  for (let at = 0; at + BATCH_HEADER_BYTES <= bytes.length; ) {
    const end = at + BATCH_HEADER_BYTES + bytes.readInt32BE(at + 8);
    if (end <= at + BATCH_HEADER_BYTES || end > bytes.length) break;
    const firstOffset = bytes.readBigInt64BE(at);
    const lastOffset = firstOffset + BigInt(bytes.readInt32BE(at + LAST_OFFSET_DELTA_AT));
    batches.push({ at, firstOffset, lastOffset, bytes: bytes.subarray(at, end) });
    at = end;
  }
  return batches;
}

/**
 * The keys of the load's events in batches that end at an offset or later. Batches are not compressed, so rows are there as they
 * were sent.
 */
export function keysSince({ batches }: CutOff, offset: bigint): string[] {
  return batches
    .filter(({ lastOffset }) => lastOffset >= offset)
    .flatMap(({ bytes }) => [...bytes.toString('latin1').matchAll(/"properties":\{"key":"([^"]+)"/g)])
    .map(([, key = '']) => key);
}

/** Resumes the partitions that the writers have halted, as an operator does. Returns the output of the command. */
export async function resumeHalted(env: Readonly<Record<string, string>>): Promise<string> {
  const child = spawn(
    process.execPath,
    [programFile('sluice'), 'writer', 'resume', '--all', '--from', 'oldest', '--yes'],
    {
      env: { ...inherited(), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  const [out, errors] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return `${out}${errors}`.trim();
}
