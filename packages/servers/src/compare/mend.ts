import { Refused } from '@sluice/shared/config/command-line';
import { sendMessages } from '@sluice/shared/kafka/send-messages';
import { topicNames } from '@sluice/shared/kafka/topics';
import { messageHeaders, PARTITIONS_HEADER } from '@sluice/shared/rows';
import { EVENT_IDENTIFIERS } from '@sluice/shared/rows/event-identifiers';
import { eventHash } from '@sluice/shared/rows/row-hashes';
import type { Kafka, Message } from 'kafkajs';
import { atServer, type ServersConfig } from '../state/connected-server.ts';
import type { DatabaseState } from '../state/database-state.ts';
import { newestOf, userKey } from './classify-differences.ts';
import type { ComparedServer, User } from './compared-server.ts';
import { type Both, ofBoth } from './different-keys.ts';
import type { EntityKey, EntityRow, MendedServer, WholeEvent } from './mended-server.ts';
import { type Mending, planMending } from './plan-mending.ts';
import type { Comparison, NamedKey } from './run-comparison.ts';

/** How much is sent to Kafka at once, in bytes; one event may have more. */
const SENT_BYTES = 256 * 1_024;

/** What is done so that two servers show the same. */
export interface MendingPlan {
  readonly events: Mending<WholeEvent>;
  /** What each server gets of the rows of users, organizations and memberships that the other one has. */
  readonly entities: Both<readonly EntityRow[]>;
}

/** Returns whether there is nothing to mend. */
export function isEmpty({ events: { send, remove }, entities }: MendingPlan): boolean {
  return [send, ...remove, ...entities].every((some) => some.length === 0);
}

/**
 * Returns over how many partitions rows are spread: an event that is sent again has to come to the partition of its repeats.
 *
 * @throws {Refused} when the databases or the environment do not agree
 */
export function partitionCountOf(states: Both<DatabaseState>, config: ServersConfig): number {
  const topic = topicNames(config).events;
  const recorded = states.flatMap(({ topicPartitions }) => topicPartitions.get(topic) ?? []);
  const counts = new Set([...recorded, config.KAFKA_PARTITIONS]);
  if (counts.size === 1) return config.KAFKA_PARTITIONS;
  throw new Refused(
    `KAFKA_PARTITIONS is ${config.KAFKA_PARTITIONS}, and the databases say ${recorded.join(' and ')}: set it to theirs.`,
  );
}

/**
 * Decides how both get the same, of the keys that the comparison has found.
 *
 * @param until what was received later is left alone, in microseconds since 1970
 * @throws ClickHouse's errors
 */
export async function planMend(
  compared: Both<ComparedServer>,
  mended: Both<MendedServer>,
  { apart, different }: Pick<Comparison, 'apart' | 'different'>,
  until: number,
): Promise<MendingPlan> {
  const keys = [...apart, ...different];
  const identities = new Map(keys.flatMap(identityOf).map((identity) => [JSON.stringify(identity), identity]));
  const found = await ofBoth(mended, (server) =>
    atServer(server.name, () => server.wholeEvents([...identities.values()])),
  );
  const deletions = await deletionsOf(compared, found.flat());
  const later = new Set(found.flat().flatMap((event) => (event.receivedUs > until ? [keyOf(event)] : [])));
  const shownBy = (events: readonly WholeEvent[]) =>
    events.filter((event) => event.receivedUs > (deletions.get(userKey(event)) ?? 0) && !later.has(keyOf(event)));
  return {
    events: planMending([shownBy(found[0]), shownBy(found[1])]),
    entities: await planEntities(mended, keys.flatMap(entityOf)),
  };
}

async function planEntities(mended: Both<MendedServer>, keys: readonly EntityKey[]): Promise<MendingPlan['entities']> {
  const [one, other] = await ofBoth(mended, (server) => atServer(server.name, () => server.entities(keys)));
  const missing = (rows: readonly EntityRow[], there: readonly EntityRow[]) => {
    const known = new Set(there.map((row) => JSON.stringify(row)));
    return rows.filter((row) => !known.has(JSON.stringify(row)));
  };
  return [missing(other, one), missing(one, other)];
}

/**
 * Mends both servers. Where it is broken off, the next comparison finds what is left. Users and organizations come first: once
 * their events are the same, a comparison could not tell any more why they differ. Events are removed from the tables, and sent
 * to Kafka: each server, also a third one, decides by the log whether it has them.
 *
 * @param onStep is called before each step, with what is waited for
 * @throws ClickHouse's and kafkajs's errors
 */
export async function runMend(
  mended: Both<MendedServer>,
  { events: { send, remove }, entities }: MendingPlan,
  kafka: { readonly kafka: Kafka; readonly topic: string; readonly partitionCount: number },
  onStep: (step: string) => void,
): Promise<void> {
  for (const [index, server] of mended.entries()) {
    const removed = remove[index] ?? [];
    onStep(`${server.name} says whether it removes rows`);
    if (removed.length > 0) await atServer(server.name, () => server.requireNoRemovals());
  }
  for (const [index, server] of mended.entries()) {
    onStep(`${server.name} stores users, organizations and memberships`);
    await atServer(server.name, () => server.storeEntities(entities[index] ?? []));
    onStep(`${server.name} removes events that repeat another one`);
    await atServer(server.name, () => server.remove(remove[index] ?? []));
  }
  onStep('Kafka takes the events');
  for (const messages of inBatches(send, kafka.partitionCount)) {
    await sendMessages(kafka.kafka, [{ topic: kafka.topic, messages }], 'the events');
  }
}

function* inBatches(send: Mending<WholeEvent>['send'], partitionCount: number): Generator<Message[]> {
  const headers = { ...messageHeaders('events'), [PARTITIONS_HEADER]: String(partitionCount) };
  let batch: Message[] = [];
  let bytes = 0;
  for (const { event, isStamped } of send) {
    const value = Buffer.from(`${lineOf(event, isStamped)}\n`);
    if (batch.length > 0 && bytes + value.length > SENT_BYTES) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push({ partition: eventHash(event.uuid) % partitionCount, headers, value });
    bytes += value.length;
  }
  if (batch.length > 0) yield batch;
}

/** Returns the row of an event, as ingest-api sent it. */
export function lineOf(event: WholeEvent, isStamped: boolean): string {
  const { workspace, uuid, timeMs, receivedUs, type, user_id, group_id, properties, context, traits } = event;
  const fields = {
    ...{ workspace_id: workspace, timestamp: timeMs, uuid, type, event: event.event, user_id, group_id },
    ...Object.fromEntries(EVENT_IDENTIFIERS.map(({ column }) => [column, event[column]])),
    received_at: receivedUs,
    ...(isStamped && { stamped: 1 }),
  };
  // Byte for byte: a number may have more digits than JavaScript keeps.
  return `${JSON.stringify(fields).slice(0, -1)},"properties":${properties},"context":${context},"traits":${traits}}`;
}

async function deletionsOf(servers: Both<ComparedServer>, events: readonly WholeEvent[]) {
  const users = new Map<string, User>(events.map((event) => [userKey(event), event]));
  const found = await ofBoth(servers, (server) =>
    atServer(server.name, () => server.lastDeletions([...users.values()])),
  );
  return newestOf(found.flat());
}

function keyOf({ workspace, uuid }: { readonly workspace: string; readonly uuid: string }): string {
  return JSON.stringify([workspace, uuid]);
}

function identityOf({ table, key: { workspace, key } }: NamedKey) {
  return table === 'events' ? [{ workspace, uuid: String(key[1]) }] : [];
}

function entityOf({ table, key: { workspace, key } }: NamedKey): EntityKey[] {
  const [kind, id, other] = key.map(String);
  return table === 'entities' ? [{ workspace, kind: kind ?? '', id: id ?? '', other: other ?? '' }] : [];
}
