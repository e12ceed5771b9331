import { ROW_FORMAT } from '@sluice/shared/rows';
import type { KafkaMessage } from 'kafkajs';

/** The rows of many messages, by kind, as they came. */
export interface RowBatch {
  readonly events: readonly Buffer[];
  readonly changes: readonly Buffer[];
}

/** A message that this version of the writer cannot read; it may have been written by a newer ingest-api. */
export class UnreadableMessage extends Error {
  override readonly name = 'UnreadableMessage';
}

/** @throws {UnreadableMessage} naming its offset */
export function toRowBatch(messages: readonly KafkaMessage[]): RowBatch {
  const events: Buffer[] = [];
  const changes: Buffer[] = [];
  for (const { headers, value, offset } of messages) {
    const kind = String(headers?.['kind']);
    const format = String(headers?.['format']);
    if (format !== ROW_FORMAT || value === null) {
      throw new UnreadableMessage(
        `the message at offset ${offset} has format "${format.slice(0, 20)}", not ${ROW_FORMAT}`,
      );
    }
    if (kind === 'events') events.push(value);
    else if (kind === 'changes') changes.push(value);
    else throw new UnreadableMessage(`the message at offset ${offset} is of the unknown kind "${kind.slice(0, 20)}"`);
  }
  return { events, changes };
}
