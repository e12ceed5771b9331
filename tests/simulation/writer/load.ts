import type { ChangeRow, EventRow } from '@sluice/shared/rows';
import { visitorOf } from '@sluice/shared/rows/deleted-person';
import { mergeKeyOf } from '@sluice/shared/rows/merged-user';
import { entityHash } from '@sluice/shared/rows/row-hashes';
import { personKey, userKey } from '../clickhouse/tables.ts';
import type { Random } from '../world/random.ts';
import { lineOfEvent, RowSender } from './row-sender.ts';
import { committedOf, storedOf } from './server.ts';
import type { World } from './world.ts';

export const WORKSPACE = 'w';
const USERS = 6;
const VISITORS = 2;
const DAY_MS = 86_400_000;

/** Appends rows to Kafka's logs as ingest-api would: new events, repeats, deletions, properties, and rows that are bad. */
export class Load {
  readonly #world: World;
  readonly #sender: RowSender;
  readonly #random: Random;
  readonly #merges: boolean;
  readonly #isOfVisitors: boolean;
  readonly #events: EventRow[] = [];
  /** The versions of the last deletions, by {@link userKey}. */
  readonly #deletions = new Map<string, number>();
  #sent = 0;
  #version = 0;

  /**
   * @param merges whether anybody says that one user became another one. Default: now and then
   * @param isOfVisitors whether most events are of visitors alone, and many of these are deleted. Default: a few
   */
  constructor(world: World, random: Random, { merges = true, isOfVisitors = false } = {}) {
    this.#merges = merges;
    this.#isOfVisitors = isOfVisitors;
    this.#world = world;
    this.#sender = new RowSender(world);
    this.#random = random;
  }

  /** Sends something. */
  act(): void {
    const random = this.#random;
    const choice = random.next();
    if (this.#isOfVisitors && random.isTrue(0.25)) this.#delete(visitorOf(this.#visitor()));
    else if (choice < 0.5) this.#sendEvents(1 + random.below(3));
    else if (choice < 0.68) this.#repeat();
    else if (choice < 0.76) this.#sendAgainForAnother();
    else if (choice < 0.8) this.#repeatForAnother();
    else if (choice < 0.88) this.#set();
    else if (choice < 0.96) this.#deleteAndSendAgain();
    else this.#sendPoison();
  }

  /** Sends something to each partition: at least until its log is longer than what is stored of it, as a log may be that was cut off. */
  sendToAll(): void {
    const { kafka, topics, servers } = this.#world;
    for (const log of kafka.logs) {
      const furthest = Math.max(...servers.flatMap((server) => [storedOf(server, log), committedOf(server, log)]));
      const { topic, partition, high } = log;
      for (let end = high; end <= Math.max(high, furthest); end += 1) {
        if (topic === topics.events) this.#sender.sendChanges('events', partition, [this.#change('delete', 'nobody')]);
        if (topic === topics.entities)
          this.#sender.sendChanges('entities', partition, [this.#change('seen', 'somebody')]);
      }
    }
  }

  #sendEvents(count: number): void {
    const events = Array.from({ length: count }, () => this.#newEvent());
    for (const event of events) this.#events.push(event);
    const byPartition = Map.groupBy(events, (event) => this.#sender.partitionOf(event.uuid));
    for (const [partition, rows] of byPartition) this.#sender.sendEvents(partition, rows);
    for (const event of events) this.#link(event);
  }

  /**
   * What names both a visitor and a user links them, and now and then somebody says whose the visitor is, or that it is nobody's. Few
   * visitors are of many users: most links are conflicts. Nothing is drawn for it, as for {@link #visitor}.
   */
  #link({ anonymous_id, user_id, received_at }: EventRow): void {
    if (anonymous_id === undefined) return;
    if (user_id !== undefined) this.#sendOfVisitor(anonymous_id, { operation: 'link', user_id, version: received_at });
    if (this.#sent % 7 === 0) {
      const said = this.#sent % 3 === 0 ? {} : { user_id: `u${this.#sent % USERS}` };
      this.#sendOfVisitor(anonymous_id, { operation: 'say', version: this.#nextVersion(), ...said });
    }
    if (this.#merges && this.#sent % 11 === 0) this.#merge();
  }

  /** Now and then somebody says whom a user became, or that it is itself. Nobody looks for chains and circles. */
  #merge(): void {
    const said = this.#sent % 4 === 0 ? {} : { user_id: `u${(this.#sent + 2) % USERS}` };
    const key = mergeKeyOf(`u${this.#sent % USERS}`);
    this.#sendOfVisitor(key, { operation: 'say', version: this.#nextVersion(), ...said });
  }

  #sendOfVisitor(visitor: string, fields: Pick<ChangeRow, 'operation' | 'version' | 'user_id'>): void {
    const row: ChangeRow = {
      ...{ workspace_id: WORKSPACE, kind: 'visitor', id: visitor, change_id: uuidOf(fields.version % 1_000_000_007) },
      ...fields,
    };
    const partition = entityHash(WORKSPACE, 'visitor', visitor) % this.#sender.partitions;
    this.#sender.sendChanges('entities', partition, [row]);
  }

  /** A client that was not answered sends its event again. */
  #repeat(): void {
    const event = this.#pickEvent();
    if (!event) return;
    const version = this.#nextVersion();
    // A repeat of a stamped event has another time of receipt, and so another timestamp.
    const timestamp = event.stamped ? Math.floor(version / 1_000) : event.timestamp;
    const repeat = { ...event, timestamp, received_at: version };
    this.#replace(event, repeat);
    this.#sendEvent(repeat);
  }

  /** Somebody imports the event of a deleted user or visitor again, for another user or for none. */
  #sendAgainForAnother(): void {
    const event = this.#pickEvent((one) => !one.stamped && this.#isDeleted(one));
    if (!event) return;
    const { user_id: _user, ...rest } = event;
    this.#sent += 1;
    const another = this.#random.isTrue(0.5) ? { user_id: `again-${this.#sent}` } : {};
    const again = { ...rest, ...another, received_at: this.#nextVersion() };
    this.#replace(event, again);
    this.#sendEvent(again);
  }

  /** A repeat that names another user must not create that user. */
  #repeatForAnother(): void {
    // It would be no repeat of a visitor who was deleted.
    const isNobodys = (one: EventRow) => one.user_id === undefined && one.anonymous_id === undefined;
    const event = this.#pickEvent((one) => isNobodys(one) && !one.stamped);
    if (!event) return;
    this.#sent += 1;
    const user = `repeat-${this.#sent}`;
    this.#world.sent.addRepeatFor(user);
    this.#sendEvent({ ...event, user_id: user, received_at: this.#nextVersion() });
  }

  #set(): void {
    this.#sent += 1;
    const id = this.#pickUser();
    const change = { property: `p${this.#random.below(2)}`, value: String(this.#sent) };
    const row: ChangeRow = { ...this.#change(this.#random.isTrue(0.5) ? 'set' : 'set_once', id), ...change };
    this.#appendOf(id, row);
  }

  /** What is deleted and sent again may come to a writer at the same time, and so may a user who comes back at once. */
  #deleteAndSendAgain(): void {
    const user = this.#pickUser();
    const isOfVisitor = this.#sent % 3 === 0;
    this.#delete(isOfVisitor ? visitorOf(this.#visitor()) : user);
    if (this.#random.isTrue(0.4)) this.#sendAgainForAnother();
    if (this.#random.isTrue(0.4) && !isOfVisitor) this.#appendOf(user, this.#change('seen', user));
  }

  /** Every partition of the events gets a copy. One with `before` spares what came after that time. */
  #delete(user: string): void {
    const change = this.#change('delete', user);
    const sparedMs = this.#random.isTrue(0.4) ? this.#random.below(2_000) : 0;
    const row = { ...change, version: change.version - sparedMs * 1_000 };
    const key = userKey(WORKSPACE, user);
    this.#deletions.set(key, Math.max(row.version, this.#deletions.get(key) ?? 0));
    this.#world.note(`load: deletes ${user}`);
    for (let partition = 0; partition < this.#sender.partitions; partition += 1) {
      this.#sender.sendChanges('events', partition, [row]);
    }
  }

  /** A row that cannot be stored, alone or among good ones. */
  #sendPoison(): void {
    const good = this.#random.isTrue(0.5) ? [this.#newEvent()] : [];
    for (const event of good) this.#events.push(event);
    const bad = { ...this.#newEvent(), ...(good[0] && { uuid: good[0].uuid }), event: '' };
    const badLine = { text: JSON.stringify(bad), sent: { kind: 'poison', row: bad } } as const;
    const lines = [...good.map(lineOfEvent), badLine];
    this.#sender.send('events', this.#sender.partitionOf(bad.uuid), 'events', lines);
  }

  #newEvent(): EventRow {
    const random = this.#random;
    this.#sent += 1;
    const version = this.#nextVersion();
    const isStamped = random.isTrue(0.2);
    const ownMs = Math.floor(version / 1_000) - random.below(4) * 20 * DAY_MS;
    const user = random.isTrue(this.#isOfVisitors ? 0.2 : 0.8) ? { user_id: this.#pickUser() } : {};
    const visitor = this.#sent % 5 < 3 ? { anonymous_id: this.#visitor() } : {};
    const organization = random.isTrue(0.5) ? { group_id: `o${random.below(2)}` } : {};
    return {
      ...{ workspace_id: WORKSPACE, uuid: uuidOf(this.#sent), event: 'e', received_at: version },
      properties: this.#properties(),
      ...(isStamped ? { timestamp: Math.floor(version / 1_000), stamped: 1 as const } : { timestamp: ownMs }),
      ...user,
      ...visitor,
      ...organization,
    };
  }

  #change(operation: ChangeRow['operation'], id: string): ChangeRow {
    const version = this.#nextVersion();
    return {
      workspace_id: WORKSPACE,
      kind: 'user',
      id,
      operation,
      version,
      change_id: uuidOf(version % 1_000_000_007),
    };
  }

  #appendOf(user: string, row: ChangeRow): void {
    this.#sender.sendChanges('entities', Number(user.slice(1)) % this.#sender.partitions, [row]);
  }

  #sendEvent(event: EventRow): void {
    this.#sender.sendEvents(this.#sender.partitionOf(event.uuid), [event]);
  }

  #replace(event: EventRow, later: EventRow): void {
    this.#events[this.#events.indexOf(event)] = later;
  }

  #isDeleted(event: EventRow): boolean {
    return event.received_at <= (this.#deletions.get(personKey(event)) ?? 0);
  }

  #pickEvent(which: (event: EventRow) => boolean = () => true): EventRow | undefined {
    const events = this.#events.filter(which);
    return events.length === 0 ? undefined : this.#random.pick(events);
  }

  #pickUser(): string {
    return `u${this.#random.below(USERS)}`;
  }

  /** Takes turns, as {@link #visitor}. */
  #properties(): NonNullable<EventRow['properties']> {
    const plan = ['pro', 'free', null][this.#sent % 3];
    return { plan, seats: this.#sent % 4, ...(this.#sent % 5 === 0 && { tags: ['new'] }) };
  }

  /** Takes turns. Nothing is drawn for it, so that a seed goes on to mean the schedule that it meant before. */
  #visitor(): string {
    return `a${this.#sent % VISITORS}`;
  }

  /** Microseconds since 1970, each later than the last. */
  #nextVersion(): number {
    this.#version = Math.max(this.#version + 1, this.#world.time.dateMs * 1_000);
    return this.#version;
  }
}

export function uuidOf(number: number): string {
  return `${number.toString(16).padStart(8, '0')}-0000-4000-8000-000000000000`;
}
