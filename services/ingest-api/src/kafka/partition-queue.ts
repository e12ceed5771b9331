import type { PartitionRows } from '@sluice/submissions/rows/row-gatherer';

/**
 * What a message takes in a record batch besides its rows, in bytes: at most 27 for its lengths and offsets, some 50 for
 * its headers. Rows of another kind than those before them begin another message.
 */
const MESSAGE_OVERHEAD_BYTES = 100;

/** Rows that wait to be sent, or that are on their way. */
export interface QueuedRows extends PartitionRows {
  readonly workspace: string;
  /** Called when Kafka has acknowledged them. */
  acknowledged(): void;
  /** Called when Kafka will never take them: they alone are larger than what the topic takes. */
  refused(): void;
  /** Their request has timed out: they are not sent again. */
  expired: boolean;
}

/** The rows that wait for one partition: FIFO within a workspace, round-robin between workspaces. */
export interface PartitionQueue {
  readonly isEmpty: boolean;
  add(rows: QueuedRows): void;
  remove(rows: QueuedRows): void;
  /** Takes rows that make a record batch of about `bytesMax` bytes; at least those that come first. */
  take(bytesMax: number): QueuedRows[];
}

export function createPartitionQueue(): PartitionQueue {
  const waiting = new Map<string, Set<QueuedRows>>();

  /** Removes the first rows of a workspace, which then goes to the end of the line. */
  function takeFirst(workspace: string, queue: Set<QueuedRows>, rows: QueuedRows): void {
    queue.delete(rows);
    if (queue.size > 0 && waiting.size === 1) return;
    waiting.delete(workspace);
    if (queue.size > 0) waiting.set(workspace, queue);
  }

  return {
    get isEmpty() {
      return waiting.size === 0;
    },
    add(rows) {
      const queue = waiting.get(rows.workspace);
      if (queue) queue.add(rows);
      else waiting.set(rows.workspace, new Set([rows]));
    },
    remove(rows) {
      const queue = waiting.get(rows.workspace);
      if (queue?.delete(rows) && queue.size === 0) waiting.delete(rows.workspace);
    },
    take(bytesMax) {
      const taken: QueuedRows[] = [];
      let bytes = 0;
      while (bytes < bytesMax) {
        const first = waiting.entries().next().value;
        const rows = first?.[1].values().next().value;
        if (!first || !rows) break;
        const overhead = rows.kind === (taken.at(-1) ?? rows).kind ? 0 : MESSAGE_OVERHEAD_BYTES;
        const added = rows.lines.length + overhead;
        if (bytes > 0 && bytes + added > bytesMax) break;
        takeFirst(first[0], first[1], rows);
        taken.push(rows);
        bytes += added;
      }
      return taken;
    },
  };
}
