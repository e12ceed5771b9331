import type { Span } from '@opentelemetry/api';
import type { PartitionRows } from '@sluice/submissions/rows/partition-rows';

/**
 * What a message takes in a record batch besides its rows, in bytes: at most 27 for its lengths and offsets, some 50 for
 * its headers, 68 for that of a trace. Rows of another kind than those before them begin another message.
 */
const MESSAGE_OVERHEAD_BYTES = 150;

/** Rows that wait to be sent, or that are on their way. */
export interface QueuedRows extends PartitionRows {
  readonly workspace: string;
  /** That of their request. */
  readonly span: Span | undefined;
  /** Called when Kafka has acknowledged them. */
  acknowledged(): void;
  /** Called when Kafka will never take them: they alone are larger than what the topic takes. */
  refused(): void;
  /** Their request has timed out: they are not sent again. */
  expired: boolean;
}

/** The rows that wait for one partition: FIFO within a workspace, round-robin between workspaces. */
export class PartitionQueue {
  /** By workspace, which are in the order of their turns. */
  readonly #waiting = new Map<string, Set<QueuedRows>>();

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  add(rows: QueuedRows): void {
    const queue = this.#waiting.get(rows.workspace);
    if (queue) queue.add(rows);
    else this.#waiting.set(rows.workspace, new Set([rows]));
  }

  remove(rows: QueuedRows): void {
    const queue = this.#waiting.get(rows.workspace);
    if (queue?.delete(rows) && queue.size === 0) this.#waiting.delete(rows.workspace);
  }

  /** Takes rows that make a record batch of about `bytesMax` bytes; at least those that come first. */
  take(bytesMax: number): QueuedRows[] {
    const taken: QueuedRows[] = [];
    let bytes = 0;
    while (bytes < bytesMax) {
      const first = this.#waiting.entries().next().value;
      const rows = first?.[1].values().next().value;
      if (!first || !rows) break;
      const overhead = rows.kind === (taken.at(-1) ?? rows).kind ? 0 : MESSAGE_OVERHEAD_BYTES;
      const added = rows.lines.length + overhead;
      if (bytes > 0 && bytes + added > bytesMax) break;
      this.#takeFirst(first[0], first[1], rows);
      taken.push(rows);
      bytes += added;
    }
    return taken;
  }

  /** Removes the first rows of a workspace, which then goes to the end of the line. */
  #takeFirst(workspace: string, queue: Set<QueuedRows>, rows: QueuedRows): void {
    queue.delete(rows);
    if (queue.size > 0 && this.#waiting.size === 1) return;
    this.#waiting.delete(workspace);
    if (queue.size > 0) this.#waiting.set(workspace, queue);
  }
}
