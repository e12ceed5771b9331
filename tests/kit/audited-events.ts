import { withAdmin } from '@sluice/shared/kafka/topics';
import { isInRange, parseRange } from '@sluice/shared/servers/partition-range';
import { type Audited, type AuditedPipeline, auditPipeline, type OnRow } from './audit.ts';
import { type ExpectedEvent, expectedEvents } from './expected-events.ts';
import { kafkaClient } from './kafka-client.ts';
import { type KafkaRow, readRows } from './kafka-rows.ts';
import type { Tally } from './load.ts';
import { readVisibleKeys } from './verify-delivery.ts';

type Fate = Parameters<OnRow>[1];

/** What a load was told, with which an audit is compared. */
export interface KnownLoad {
  /** Where the stored events of the audited server are. */
  readonly clickhouseUrl: string;
  readonly database: string;
  readonly tally: Tally;
  /** The keys of events that Kafka has lost before they were stored, and of all that it has lost. */
  readonly cutOff?: ReadonlySet<string>;
  readonly gone?: ReadonlySet<string>;
}

/**
 * Audits a pipeline that has stored everything, and compares where it says that each event of a load is with what clients were
 * told and with what is visible. Nothing but the result comes from the audit.
 *
 * @returns the result, and a sentence for each event of which both do not say the same
 */
export async function compareEvents(
  audited: AuditedPipeline,
  { clickhouseUrl, database, tally, cutOff = new Set(), gone = new Set() }: KnownLoad,
): Promise<{ readonly books: Audited; readonly different: readonly string[] }> {
  const places = new Map<string, Fate[]>();
  const books = await auditPipeline(audited, {
    onRow: (kind, fate, place) => {
      const name = nameOf(place);
      if (kind === 'events') places.set(name, [...(places.get(name) ?? []), fate]);
    },
  });
  const rows = await readEventRows(audited);
  const different: string[] = [];
  const fatesOf = new Map<string, Fate[]>();
  const uuidsOf = new Map<string, Set<unknown>>();
  for (const row of rows) {
    const fates = places.get(nameOf(row)) ?? [];
    if (fates.length !== 1) different.push(`the row ${nameOf(row)} is in ${fates.length} places: ${fates.join(', ')}`);
    const key = keyOf(row);
    if (key === undefined) continue;
    fatesOf.set(key, [...(fatesOf.get(key) ?? []), ...fates]);
    uuidsOf.set(key, (uuidsOf.get(key) ?? new Set()).add(row.row['uuid']));
  }
  if (places.size !== rows.length)
    different.push(`the log has ${rows.length} rows of events, the audit ${places.size}`);

  const visible = await readVisibleKeys(database, clickhouseUrl, tally.name);
  const expected = expectedEvents(tally, cutOff);
  const deletions = tally.operations.flatMap(({ action }) => (action.kind === 'delete' ? [action.user] : []));
  const deleted = new Set(deletions);
  for (const [key, fates] of fatesOf) {
    const event = expected.get(key);
    const known = {
      isDeleted: event?.users.isDisjointFrom(deleted) === false,
      ...{ isVisible: visible.has(key), isGone: gone.has(key) },
    };
    const fault = event ? faultOf(event, fates, known) : 'nobody sent it';
    if (fault !== undefined) different.push(`${key} is ${fates.join(', ')}: ${fault}`);
  }
  if (fatesOf.size === 0) different.push('the log has no event of the load');
  // Of several servers, each has the events of its partitions.
  if ((audited.partitions ?? '') === '') {
    for (const [key, uuid] of tally.accepted) {
      if (!gone.has(key) && !uuidsOf.get(key)?.has(uuid))
        different.push(`${key} was acknowledged, and no row has its uuid`);
    }
  }
  return { books, different };
}

/** What is known of an event beside what its client was told. */
interface Known {
  /** One of its users was deleted at some time. */
  readonly isDeleted: boolean;
  readonly isVisible: boolean;
  /** Kafka has lost rows of it. */
  readonly isGone: boolean;
}

/** Returns what is wrong with the places of the rows of an event. */
function faultOf(
  event: ExpectedEvent,
  fates: readonly Fate[],
  { isDeleted, isVisible, isGone }: Known,
): string | undefined {
  const possible = new Set<Fate>(['stored', 'repeats']);
  if (isDeleted) possible.add('deleted');
  if (isDeleted && isGone) possible.add('unknown');
  const wrong = fates.filter((fate) => !possible.has(fate));
  if (wrong.length > 0) return `no row of it can be ${wrong.join(', ')}`;
  const stored = fates.filter((fate) => fate === 'stored').length;
  if (stored > 1) return 'it is stored once';
  if (stored === 1 && !isVisible) return 'it is not visible';
  // The row that is stored may be one that Kafka has lost.
  if (stored === 0 && isVisible && !isGone) return 'it is visible';
  if (!isVisible && !isGone && !fates.includes('deleted')) return 'there is nothing that it repeats';
  if (event.must && !isVisible) return 'it was acknowledged, and not deleted since';
  if (!event.may && stored > 0) return 'it was deleted';
  return undefined;
}

function nameOf(place: {
  readonly partition: number;
  readonly offset: string | number;
  readonly line: number;
}): string {
  return `${place.partition}@${place.offset}:${place.line}`;
}

/** Reads the rows of events that the log has now. */
async function readEventRows({ environment, partitions = '' }: AuditedPipeline): Promise<readonly KafkaRow[]> {
  const brokers = (environment['KAFKA_BROKERS'] ?? '').split(',');
  const topic = `${environment['KAFKA_TOPIC_PREFIX']}events`;
  const ends = await withAdmin(kafkaClient(brokers), (admin) => admin.fetchTopicOffsets(topic));
  const left = new Map(ends.filter(({ low, high }) => low !== high).map(({ partition, high }) => [partition, high]));
  const rows = await readRows(brokers, topic, (read) => {
    const last = read.at(-1);
    if (last && String(BigInt(last.offset) + 1n) === left.get(last.partition)) left.delete(last.partition);
    return left.size === 0;
  });
  const range = parseRange(partitions);
  return rows.filter(({ partition, kind }) => isInRange(range, partition) && kind === 'events');
}

/** The key of an event of a load. */
function keyOf({ row }: KafkaRow): string | undefined {
  const key = (row['properties'] as Readonly<Record<string, unknown>> | undefined)?.['key'];
  return typeof key === 'string' ? key : undefined;
}
