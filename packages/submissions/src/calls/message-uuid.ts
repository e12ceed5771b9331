import { hash } from 'node:crypto';
import { hashUuid } from '../hash-uuid.ts';

/** The namespace of the UUIDs that are derived from messageIds. Never change it: repeats would be new events. */
export const MESSAGE_ID_NAMESPACE = 'd0a4a3f6-3a0e-4a55-8a5f-6a3bb0a4c3b1';

const NAMESPACE = Buffer.from(MESSAGE_ID_NAMESPACE.replaceAll('-', ''), 'hex');

/**
 * Returns the uuid of the event with a messageId that is no UUID: the UUIDv5 of workspace and messageId (RFC 9562, section
 * 5.5). The library `uuid` takes 15 µs for it, as much as everything else in ingest-api together, and this 2.4.
 */
export function messageUuid(workspace: string, messageId: string): string {
  const name = `${workspace}\0${messageId}`;
  // A unit of UTF-16 takes at most three bytes.
  const bytes = Buffer.allocUnsafe(NAMESPACE.length + 3 * name.length);
  NAMESPACE.copy(bytes);
  const end = NAMESPACE.length + bytes.write(name, NAMESPACE.length);
  return hashUuid(hash('sha1', bytes.subarray(0, end), 'hex'), 5);
}
