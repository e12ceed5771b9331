import { type ChangeRow, type EventRow, messageHeaders, PARTITIONS_HEADER } from '@sluice/shared/rows';
import type { Random } from '../world/random.ts';
import type { SentRow } from './oracle.ts';
import type { World } from './world.ts';

const WORKSPACE = 'w';
const USERS = 6;
const DAY_MS = 86_400_000;

/** Appends rows to Kafka's logs as ingest-api would: new events, repeats, deletions, properties, and rows that are bad. */
export class Load {
  readonly #world: World;
  readonly #random: Random;
  readonly #events: EventRow[] = [];
  /** The versions of the last deletions, by user. */
  readonly #deletions = new Map<string, number>();
  #sent = 0;
  #version = 0;

  constructor(world: World, random: Random) {
    this.#world = world;
    this.#random = random;
  }

  /** Sends something. */
  act(): void {
    const random = this.#random;
    const choice = random.next();
    if (choice < 0.5) this.#sendEvents(1 + random.below(3));
    else if (choice < 0.68) this.#repeat();
    else if (choice < 0.76) this.#sendAgainForAnother();
    else if (choice < 0.8) this.#repeatForAnother();
    else if (choice < 0.88) this.#set();
    else if (choice < 0.96) this.#deleteAndSendAgain();
    else this.#sendPoison();
  }

  /** Sends something to each partition. */
  sendToAll(): void {
    const { kafka, topics } = this.#world;
    for (const { topic, partition } of kafka.logs) {
      if (topic === topics.events) this.#append('events', partition, 'changes', [this.#change('delete', 'nobody')]);
      if (topic === topics.entities) this.#append('entities', partition, 'changes', [this.#change('seen', 'somebody')]);
    }
  }

  #sendEvents(count: number): void {
    const events = Array.from({ length: count }, () => this.#newEvent());
    for (const event of events) this.#events.push(event);
    const byPartition = Map.groupBy(events, (event) => this.#partitionOf(event.uuid));
    for (const [partition, rows] of byPartition) this.#append('events', partition, 'events', rows);
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

  /** Somebody imports the event of a deleted user again, for another user or for nobody. */
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
    const event = this.#pickEvent((one) => one.user_id === undefined && !one.stamped);
    if (!event) return;
    this.#sent += 1;
    const user = `repeat-${this.#sent}`;
    this.#world.oracle.addRepeatFor(user);
    this.#sendEvent({ ...event, user_id: user, received_at: this.#nextVersion() });
  }

  #set(): void {
    this.#sent += 1;
    const id = this.#pickUser();
    const change = { property: `p${this.#random.below(2)}`, value: String(this.#sent) };
    const row: ChangeRow = { ...this.#change('set', id), ...change };
    this.#append('entities', Number(id.slice(1)) % this.#world.config.KAFKA_PARTITIONS, 'changes', [row]);
  }

  /** Every partition of the events gets a copy. */
  /** What is deleted and sent again may come to a writer at the same time. */
  #deleteAndSendAgain(): void {
    this.#delete();
    if (this.#random.isTrue(0.4)) this.#sendAgainForAnother();
  }

  #delete(): void {
    const user = this.#pickUser();
    const row = this.#change('delete', user);
    this.#deletions.set(user, row.version);
    this.#world.note(`load: deletes ${user}`);
    for (let partition = 0; partition < this.#world.config.KAFKA_PARTITIONS; partition += 1) {
      this.#append('events', partition, 'changes', [row]);
    }
  }

  /** A row that cannot be stored, alone or among good ones. */
  #sendPoison(): void {
    const good = this.#random.isTrue(0.5) ? [this.#newEvent()] : [];
    for (const event of good) this.#events.push(event);
    const bad = { ...this.#newEvent(), ...(good[0] && { uuid: good[0].uuid }), event: '' };
    this.#append('events', this.#partitionOf(bad.uuid), 'events', [...good, bad]);
  }

  #newEvent(): EventRow {
    const random = this.#random;
    this.#sent += 1;
    const version = this.#nextVersion();
    const isStamped = random.isTrue(0.2);
    const ownMs = Math.floor(version / 1_000) - random.below(4) * 20 * DAY_MS;
    const user = random.isTrue(0.8) ? { user_id: this.#pickUser() } : {};
    const organization = random.isTrue(0.5) ? { group_id: `o${random.below(2)}` } : {};
    return {
      ...{ workspace_id: WORKSPACE, uuid: uuidOf(this.#sent), event: 'e', received_at: version },
      ...(isStamped ? { timestamp: Math.floor(version / 1_000), stamped: 1 as const } : { timestamp: ownMs }),
      ...user,
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

  #sendEvent(event: EventRow): void {
    this.#append('events', this.#partitionOf(event.uuid), 'events', [event]);
  }

  #append(
    topic: 'events' | 'entities',
    partition: number,
    kind: 'events' | 'changes',
    rows: readonly (EventRow | ChangeRow)[],
  ): void {
    const { kafka, topics, config, oracle } = this.#world;
    const log = kafka.log(topics[topic], partition);
    if (!log) throw new Error(`there is no partition ${topic}/${partition}`);
    const headers = { ...messageHeaders(kind), [PARTITIONS_HEADER]: String(config.KAFKA_PARTITIONS) };
    const value = Buffer.from(rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    const record = kafka.append(log, { headers, value });
    const sent = rows.map((row): SentRow => {
      if ('event' in row && row.event === '') return { kind: 'poison', row };
      return kind === 'events' ? { kind: 'event', row: row as EventRow } : { kind: 'change', row: row as ChangeRow };
    });
    oracle.addSent(record, sent);
  }

  #replace(event: EventRow, later: EventRow): void {
    this.#events[this.#events.indexOf(event)] = later;
  }

  #isDeleted({ user_id = '', received_at }: EventRow): boolean {
    return received_at <= (this.#deletions.get(user_id) ?? 0);
  }

  #pickEvent(which: (event: EventRow) => boolean = () => true): EventRow | undefined {
    const events = this.#events.filter(which);
    return events.length === 0 ? undefined : this.#random.pick(events);
  }

  #pickUser(): string {
    return `u${this.#random.below(USERS)}`;
  }

  #partitionOf(uuid: string): number {
    return Number.parseInt(uuid.slice(0, 8), 16) % this.#world.config.KAFKA_PARTITIONS;
  }

  /** Microseconds since 1970, each later than the last. */
  #nextVersion(): number {
    this.#version = Math.max(this.#version + 1, this.#world.time.dateMs * 1_000);
    return this.#version;
  }
}

function uuidOf(number: number): string {
  return `${number.toString(16).padStart(8, '0')}-0000-4000-8000-000000000000`;
}
