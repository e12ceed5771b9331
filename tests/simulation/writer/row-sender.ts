import {
  type ChangeRow,
  type EventRow,
  type MessageKind,
  messageHeaders,
  PARTITIONS_HEADER,
} from '@sluice/shared/rows';
import type { SentRow } from './sent-rows.ts';
import type { World } from './world.ts';

/** A line of a message, and what it has to become. */
export interface SentLine {
  readonly text: string;
  readonly sent: SentRow;
}

/** Appends messages to Kafka's logs as ingest-api would. */
export class RowSender {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  get partitions(): number {
    return this.#world.config.KAFKA_PARTITIONS;
  }

  /** Returns the partition of an event. */
  partitionOf(uuid: string): number {
    return partitionOf(uuid, this.partitions);
  }

  sendEvents(partition: number, rows: readonly EventRow[]): void {
    this.send('events', partition, 'events', rows.map(lineOfEvent));
  }

  sendChanges(topic: 'events' | 'entities', partition: number, rows: readonly ChangeRow[]): void {
    this.send(topic, partition, 'changes', rows.map(lineOfChange));
  }

  /** Sends one message. @throws {Error} when there is no such partition */
  send(topic: 'events' | 'entities', partition: number, kind: MessageKind, lines: readonly SentLine[]): void {
    const { kafka, topics, sent } = this.#world;
    const log = kafka.log(topics[topic], partition);
    if (!log) throw new Error(`there is no partition ${topic}/${partition}`);
    const headers = { ...messageHeaders(kind), [PARTITIONS_HEADER]: String(this.partitions) };
    const value = Buffer.from(lines.map(({ text }) => `${text}\n`).join(''));
    const rows = lines.map((line) => line.sent);
    sent.add(log, kafka.append(log, { headers, value }), rows);
  }
}

/** Returns to which of so many partitions an event is sent. */
export function partitionOf(uuid: string, partitions: number): number {
  return Number.parseInt(uuid.slice(0, 8), 16) % partitions;
}

export function lineOfEvent(row: EventRow): SentLine {
  return { text: JSON.stringify(row), sent: { kind: 'event', row } };
}

export function lineOfChange(row: ChangeRow): SentLine {
  return { text: JSON.stringify(row), sent: { kind: 'change', row } };
}
