import type { PartitionRows } from '@sluice/submissions/rows/row-gatherer';

/** Rows that wait to be sent, or that are on their way. */
export interface QueuedRows extends PartitionRows {
  readonly workspace: string;
  /** Called when Kafka has acknowledged them. */
  acknowledged(): void;
  /** Their request has timed out: they are not sent again. */
  expired: boolean;
}

/** The rows that wait for one partition: FIFO within a workspace, round-robin between workspaces. */
export interface PartitionQueue {
  readonly isEmpty: boolean;
  add(rows: QueuedRows): void;
  remove(rows: QueuedRows): void;
  /** Takes rows of about `bytesMax` bytes; at least those that come first. */
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
        if (!first || !rows || (bytes > 0 && bytes + rows.lines.length > bytesMax)) break;
        takeFirst(first[0], first[1], rows);
        taken.push(rows);
        bytes += rows.lines.length;
      }
      return taken;
    },
  };
}
