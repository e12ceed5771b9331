import { randomUUIDv7 } from 'node:crypto';
import type { ChangeRow } from '@sluice/shared/rows';
import { partsTooLarge } from '../reading/body-problems.ts';
import type { Pause } from '../reading/pause.ts';
import type { Submission } from '../reading/submission.ts';
import { uuidV7TimeMs } from '../reading/submission-limits.ts';
import type { Acceptance } from './acceptance.ts';
import { changeRow, outgoingChange, propertyRow } from './change-row.ts';
import { EventRows, subjectFields } from './event-row.ts';
import { type LinkRegister, linkOf, linkRow } from './link-row.ts';
import type { RowCollector } from './partition-rows.ts';
import { fitsRecord, ROW_BYTES_MAX } from './row-size.ts';

/**
 * Creates the rows of a valid submission. Everything that decides where a row is stored is decided here.
 *
 * @param acceptance its version is that of the first event, each further event has the next one
 * @returns the uuids of the events, in order
 * @throws {Problem} `body_too_large` when an event or a property does not fit into a Kafka record
 * @throws what the collector throws
 */
export async function collectRows(
  submission: Submission,
  acceptance: Acceptance,
  collector: RowCollector,
  links: LinkRegister,
  pause: Pause,
): Promise<string[]> {
  const uuids: string[] = [];
  const tooLarge: string[] = [];
  const rows = new EventRows(acceptance);
  const { version } = acceptance;
  const subject = subjectFields(submission.userId, submission.groupId);
  let visitor: string | undefined;
  for (const [index, event] of submission.events.entries()) {
    const waiting = pause();
    if (waiting) await waiting;
    const { timestamp, uuid: ownUuid } = event;
    const ownTimeMs = timestamp ?? uuidV7TimeMs(ownUuid);
    // Each event has a version of its own, as each call has: it tells the order of events of one time.
    const { uuid, row } = rows.create(event, {
      ...{ subject, version: version + index, uuid: ownUuid, timestamp, index },
      ownTimeMs,
    });
    uuids.push(uuid);
    if (!fitsRecord(row.line)) tooLarge.push(`events.${index}`);
    collector.add(row);
    // Mostly the visitor is that of the event before.
    if (event.anonymousId !== visitor) {
      visitor = event.anonymousId;
      const link = linkOf(visitor, submission.userId);
      if (link && links.needsRow(link)) collector.add(linkRow(link, { ...acceptance, version: version + index }));
    }
  }
  for (const row of changeRows(submission, acceptance)) {
    const waiting = pause();
    if (waiting) await waiting;
    const outgoing = outgoingChange(row);
    if (!fitsRecord(outgoing.line)) tooLarge.push(`properties.${row.property?.slice(0, 100)}`);
    collector.add(outgoing);
  }
  if (tooLarge.length > 0) throw partsTooLarge(tooLarge, `must be at most ${ROW_BYTES_MAX} bytes as a row`);
  return uuids;
}

function* changeRows(submission: Submission, acceptance: Acceptance): Generator<ChangeRow> {
  const { subject, userId, groupId, events, properties } = submission;
  if (events.length > 0 && properties === undefined) return;
  const changeId = randomUUIDv7();
  // An event shows by itself that its user and organization exist, and belong together. Without events, a row says so.
  if (events.length === 0) {
    if (userId !== undefined) {
      const seen = changeRow('user', userId, acceptance, 'seen', changeId);
      yield groupId === undefined ? seen : { ...seen, group_id: groupId };
    }
    if (groupId !== undefined) yield changeRow('organization', groupId, acceptance, 'seen', changeId);
  }
  const id = subject === 'user' ? userId : groupId;
  if (id === undefined) return;
  for (const property of properties ?? []) yield propertyRow(subject, id, property, acceptance, changeId);
}
