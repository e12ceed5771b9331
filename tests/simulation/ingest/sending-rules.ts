import type { ChangeRow, EventRow } from '@sluice/shared/rows';
import type { LogRecord, PartitionLog } from '../kafka/partition-log.ts';
import type { Sent } from '../kafka/produce.ts';
import { ERROR_CODES, type Node } from '../kafka/simulated-kafka.ts';
import type { SimulatedProcess } from '../world/simulated-process.ts';
import type { VirtualTime } from '../world/virtual-time.ts';
import type { SentLine } from './row-identity.ts';

/** How often a process may send to a partition that refuses, within a second. It waits at least 25 ms, then longer. */
const REFUSALS_PER_SECOND_MAX = 30;

/** The largest record batch that brokers take by default, in bytes. */
const DEFAULT_BATCH_BYTES = 1_048_588;

/** What the rules need to know. */
export interface SendingRulesOptions {
  readonly time: VirtualTime;
  readonly report: (violation: string) => void;
}

/** A record batch that a process has sent. */
interface Batch {
  readonly lines: readonly SentLine[];
  readonly sender: Sender;
}

/** What is known of a process that sends. */
class Sender {
  /** When it has got the acknowledgement of rows, in milliseconds. */
  readonly acknowledged = new Map<string, number>();
  readonly sent = new Set<string>();
  /** The highest time of receipt so far, by partition and workspace, in milliseconds. */
  readonly newest = new Map<string, number>();
  /** When partitions have refused something in the last second, by name. */
  readonly refusals = new Map<string, number[]>();
  /** Something has failed: what failed is sent again, after others. */
  isDisturbed = false;
}

/** How rows have to be sent, whatever becomes of them. */
export class SendingRules {
  readonly #options: SendingRulesOptions;
  readonly #senders = new Map<SimulatedProcess, Sender>();
  readonly #batches = new Map<string, Batch>();

  constructor(options: SendingRulesOptions) {
    this.#options = options;
  }

  /** Something of a process has failed. */
  disturb(process: SimulatedProcess): void {
    this.#senderOf(process).isDisturbed = true;
  }

  appended(
    log: PartitionLog,
    [first]: readonly LogRecord[],
    lines: readonly SentLine[],
    { by: producer, atMs }: Sent,
  ): void {
    if (!producer || !first) return;
    const sender = this.#senderOf(producer);
    this.#batches.set(`${partitionOf(log)} ${first.offset}`, { lines, sender });
    for (const { line, row, kind } of lines) {
      const place = `${partitionOf(log)} ${line}`;
      const isAcknowledged = atMs > (sender.acknowledged.get(place) ?? Infinity);
      if (isAcknowledged) this.#report(`${producer.name} sends again what was acknowledged: ${line}`);
      const isNew = !sender.sent.has(place);
      sender.sent.add(place);
      if (isNew && !isDeletion(kind, row)) this.#checkOrder(log, row, producer, sender);
    }
  }

  /** Rows of a workspace do not overtake each other on their first way to a partition. */
  #checkOrder(log: PartitionLog, row: EventRow | ChangeRow, producer: SimulatedProcess, sender: Sender): void {
    const queue = `${partitionOf(log)} ${row.workspace_id}`;
    const ms = Math.floor(versionOf(row) / 1_000);
    const newest = sender.newest.get(queue) ?? 0;
    if (ms < newest && !sender.isDisturbed)
      this.#report(`${producer.name} sends rows in another order than it got them`);
    sender.newest.set(queue, Math.max(ms, newest));
  }

  #report(violation: string): void {
    this.#options.report(violation);
  }

  refused(log: PartitionLog, node: Node, errorCode: number, { by: producer }: Sent): void {
    const name = partitionOf(log);
    if (errorCode === ERROR_CODES.NOT_LEADER_FOR_PARTITION && log.leaderEpoch === 0) {
      this.#report(`rows of ${name} are sent to broker ${node.nodeId}, which has never led it`);
    }
    if (errorCode === ERROR_CODES.MESSAGE_TOO_LARGE && log.batchBytesMax === DEFAULT_BATCH_BYTES) {
      this.#report(`a record batch for ${name} is larger than brokers take by default`);
    }
    if (!producer) return;
    const sender = this.#senderOf(producer);
    const nowMs = this.#options.time.nowMs;
    const recent = [...(sender.refusals.get(name) ?? []).filter((atMs) => atMs > nowMs - 1_000), nowMs];
    sender.refusals.set(name, recent);
    if (recent.length > REFUSALS_PER_SECOND_MAX) this.#report(`${producer.name} sends to ${name} without a pause`);
  }

  acknowledged(log: PartitionLog, offset: number): void {
    const batch = this.#batches.get(`${partitionOf(log)} ${offset}`);
    for (const { line } of batch?.lines ?? []) {
      const place = `${partitionOf(log)} ${line}`;
      if (!batch?.sender.acknowledged.has(place)) batch?.sender.acknowledged.set(place, this.#options.time.nowMs);
    }
  }

  #senderOf(process: SimulatedProcess): Sender {
    const sender = this.#senders.get(process) ?? new Sender();
    this.#senders.set(process, sender);
    return sender;
  }
}

function partitionOf({ topic, partition }: PartitionLog): string {
  return `${topic}/${partition}`;
}

function isDeletion(kind: string, row: EventRow | ChangeRow): boolean {
  return kind === 'changes' && (row as ChangeRow).operation === 'delete';
}

/** In microseconds since 1970. */
function versionOf(row: EventRow | ChangeRow): number {
  return 'version' in row ? row.version : row.received_at;
}
