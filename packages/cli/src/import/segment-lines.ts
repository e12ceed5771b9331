import { hashUuid } from '@sluice/submissions/calls/message-uuid';
import { setMembers } from '@sluice/submissions/reading/json-members';
import { callFormat } from './call-format.ts';
import { type ChangedEntity, callLine, msOf, timeOf } from './calls.ts';
import { type LineContent, readJsonObject, refused } from './format.ts';
import { lineHash } from './submission-lines.ts';

type JsonObject = Readonly<Record<string, unknown>>;

/** Each of the three times that a corrected one is computed from may have been rounded. */
const ROUNDING_MS = 3;

/** Calls as Segment and RudderStack archive them in object storage: each as its client sent it, with fields of the server. */
export const segmentFormat = callFormat((bytes, number): LineContent => {
  const content = readJsonObject(bytes);
  if (content.kind !== 'object') return content;
  const call = content.value;
  const timestamp = timestampOf(call);
  if (timestamp === undefined) {
    return refused('has no usable time: timestamp, originalTimestamp or receivedAt is needed');
  }
  const values = new Map([['timestamp', JSON.stringify(new Date(timestamp))]]);
  // A messageId of its own, so that the file can be imported again.
  if (!isGiven(call['messageId']))
    values.set('messageId', JSON.stringify(hashUuid(lineHash(bytes, number).toString('hex'), 8)));
  return callLine(number, setMembers(bytes, values), entityOf(call));
});

function timestampOf(call: JsonObject): number | undefined {
  const timestamp = msOf(call['timestamp']);
  const original = msOf(call['originalTimestamp']);
  const received = msOf(call['receivedAt']);
  const isCorrected = isCorrection(timestamp, { original, received, sent: msOf(call['sentAt']) });
  return timeOf({ happened: isCorrected ? [original, timestamp] : [timestamp, original], received });
}

/**
 * Whether the archiving pipeline computed `timestamp` from the time that the client sent and left that in
 * `originalTimestamp`. The client's time is then the better one: the correction differs in each repeat of a call, so that
 * a call that the client sent twice, or to Sluice as well, would be two events. RudderStack computes nothing when the
 * client sends `timestamp`; its `originalTimestamp` is then often the time of receipt (`enhanceWithTimeFields` in
 * rudder-server's `processor.go`).
 */
function isCorrection(
  timestamp: number | undefined,
  { original, sent, received }: Readonly<Record<'original' | 'sent' | 'received', number | undefined>>,
): boolean {
  if (timestamp === undefined || original === undefined || sent === undefined || received === undefined) return false;
  return Math.abs(received - (sent - original) - timestamp) <= ROUNDING_MS;
}

function entityOf({ type, userId, groupId, context }: JsonObject): ChangedEntity | undefined {
  if (type === 'identify') return isGiven(userId) ? { kind: 'user', id: userId } : undefined;
  if (type !== 'group') return undefined;
  const id = isGiven(groupId) ? groupId : (context as JsonObject | null | undefined)?.['groupId'];
  return isGiven(id) ? { kind: 'organization', id } : undefined;
}

/** As the service sees it: `null` and an empty text count as absent. */
function isGiven(id: unknown): boolean {
  return (id ?? '') !== '';
}
