import { type ChangeRow, type EventRow, ROW_FORMAT } from '@sluice/shared/rows';
import { isVisitor, visitorOf } from '@sluice/shared/rows/deleted-person';
import { deadLetterId } from '@sluice/storage/protocol/dead-letter';
import { subjectOf } from '../clickhouse/statements.ts';
import type { Random } from '../world/random.ts';
import { Load, uuidOf, WORKSPACE } from '../writer/load.ts';
import { lineOfEvent, RowSender, type SentLine } from '../writer/row-sender.ts';
import type { World } from '../writer/world.ts';

const MINUTE_MS = 60_000;
const DAY_US = 86_400_000_000;

/** Where uuids begin that the ordinary load does not use. */
const FIRST_UUID = 0x10_00_00_00;

/** How many of them are sent over and over. */
const REPEATED = 6;

/** After these times, which are past, are those of the repeated events: one of them is around the end of a month. */
const TIMES_MS = [Date.UTC(2026, 2, 1, 11, 20), Date.UTC(2026, 1, 28, 23, 50)];

/** How long after the first copy of a deletion the last one may reach Kafka, in milliseconds. */
const SPREAD_MS = 60;

/**
 * The ordinary load, and beside it what makes the most of how a log is cut into batches: the same few events over and over,
 * stamped ones within ten minutes and a little more, equal keys for several users, with times of receipt in no order, as
 * those of several ingest-apis with wrong clocks are; deletions whose copies come one after the other, or not everywhere;
 * lines that are no rows. All of it is of other users and organizations than the ordinary load.
 */
export class DisorderlyLoad {
  readonly #world: World;
  readonly #random: Random;
  readonly #ordinary: Load;
  readonly #sender: RowSender;
  #sent = 0;

  constructor(world: World, random: Random) {
    this.#world = world;
    this.#random = random;
    this.#ordinary = new Load(world, random);
    this.#sender = new RowSender(world);
  }

  /** Sends something. */
  act(): void {
    const choice = this.#random.next();
    if (choice < 0.5) this.#ordinary.act();
    else if (choice < 0.8) this.#sendEvents();
    else if (choice < 0.87) this.#sendLineThatIsNoRow();
    else if (choice < 0.95) this.#sendChanges();
    else this.#delete();
  }

  /** Sends something to each partition. */
  sendToAll(): void {
    this.#ordinary.sendToAll();
  }

  #sendEvents(): void {
    // No more than "little memory" has room for.
    const events = Array.from({ length: 1 + this.#random.below(3) }, () => this.#event());
    const byPartition = Map.groupBy(events, (event) => this.#sender.partitionOf(event.uuid));
    for (const [partition, rows] of byPartition) this.#sender.sendEvents(partition, rows);
  }

  #sendLineThatIsNoRow(): void {
    const random = this.#random;
    const [event, other] = [this.#event(), this.#event()];
    const row = JSON.stringify(event);
    const text = random.pick([`[${row}]`, `[${row}]`, `${row};`, row + JSON.stringify(other), row.slice(1)]);
    const id = deadLetterId({ kind: 'events', row: Buffer.from(text) });
    const { version: received_at, ...subject } = subjectOf({ kind: 'events', format: ROW_FORMAT, row: text });
    const line: SentLine = { text, sent: { kind: 'poison', row: { ...subject, received_at }, deadLetterId: id } };
    const others = random.isTrue(0.6) ? [] : [lineOfEvent({ ...this.#event(), uuid: event.uuid })];
    const lines = random.isTrue(0.5) ? [line, ...others] : [...others, line];
    this.#sender.send('events', this.#sender.partitionOf(event.uuid), 'events', lines);
  }

  #event(): EventRow {
    const random = this.#random;
    this.#sent += 1;
    const [user_id, group_id] = [this.#pickUser(), random.pick(['', 'g0', 'g1', 'g2'])];
    const anonymous_id = random.pick(['', 'b0', 'b1']);
    return {
      ...{ workspace_id: WORKSPACE, uuid: uuidOf(FIRST_UUID + random.below(REPEATED)), event: `e${this.#sent}` },
      ...this.#times(),
      ...(user_id !== '' && { user_id }),
      ...(anonymous_id !== '' && { anonymous_id }),
      ...(group_id !== '' && { group_id }),
    };
  }

  #times(): Pick<EventRow, 'timestamp' | 'received_at' | 'stamped'> {
    const random = this.#random;
    const timestamp = random.pick(TIMES_MS) + random.below(32) * MINUTE_MS + random.pick([0, 0, 0, 1, -1]);
    const isStamped = random.isTrue(0.6);
    // An event may have the time of its receipt by chance.
    const isTimedByReceipt = isStamped || random.isTrue(0.2);
    const received_at = isTimedByReceipt ? timestamp * 1_000 + this.#microseconds() : this.#version();
    return { timestamp, received_at, ...(isStamped && { stamped: 1 as const }) };
  }

  #sendChanges(): void {
    const changes = Array.from({ length: 1 + this.#random.below(3) }, () => this.#change());
    this.#sender.sendChanges('entities', this.#random.below(this.#sender.partitions), changes);
  }

  #change(): ChangeRow {
    const random = this.#random;
    this.#sent += 1;
    const kind = random.isTrue(0.7) ? 'user' : 'organization';
    const id = kind === 'user' ? this.#pickUser() || 'v0' : random.pick(['g0', 'g1']);
    const operation = random.pick(['seen', 'set', 'set_once', 'set_once', 'remove'] as const);
    const group_id = kind === 'user' && operation === 'seen' ? random.pick(['', 'g0', 'g1']) : '';
    // What is set once is stored by weeks.
    const version = this.#version() - (operation === 'set_once' ? random.pick([0, 0, 7, 15]) * DAY_US : 0);
    return {
      ...{ workspace_id: WORKSPACE, kind, id, operation, version, change_id: uuidOf(this.#sent) },
      ...(operation !== 'seen' && { property: random.pick(['q0', 'q1']) }),
      ...((operation === 'set' || operation === 'set_once') && { value: String(this.#sent) }),
      ...(group_id !== '' && { group_id }),
    };
  }

  /** A deletion that got 503 has not reached all partitions. */
  #delete(): void {
    const random = this.#random;
    this.#sent += 1;
    const id = random.pick(['v2', 'd0', 'd1', visitorOf('b1')]);
    const version = random.isTrue(0.7) ? this.#version() : this.#times().received_at;
    const fields = { workspace_id: WORKSPACE, kind: 'user', id, operation: 'delete', version } as const;
    if (random.isTrue(0.5)) this.#sendAround(id);
    const reached = random.isTrue(0.8) ? 1 : 0.5;
    this.#world.note(`load: deletes ${id}${reached < 1 ? ', not in all partitions' : ''}`);
    for (let partition = 0; partition < this.#sender.partitions; partition += 1) {
      if (!random.isTrue(reached)) continue;
      const row: ChangeRow = { ...fields, change_id: uuidOf(this.#sent) };
      const send = () => this.#sender.sendChanges('events', partition, [row]);
      this.#world.time.after(random.between(0, SPREAD_MS), send);
    }
  }

  /** The same event over and over for several users while the deletion of one of them is on its way. */
  #sendAround(deleted: string): void {
    const random = this.#random;
    const first = this.#event();
    const copies = Array.from({ length: 1 + random.below(3) }, () => {
      const { user_id: _user, ...copy } = { ...this.#event(), uuid: first.uuid };
      const user_id = random.pick(['', 'v0', 'v1', 'v2', deleted]);
      const times = copy.stamped || random.isTrue(0.3) ? {} : { timestamp: first.timestamp };
      return { ...copy, ...times, ...(user_id !== '' && !isVisitor(user_id) && { user_id }) };
    });
    const partition = this.#sender.partitionOf(first.uuid);
    const ofDeleted = isVisitor(deleted) ? {} : { user_id: deleted };
    this.#sender.sendEvents(partition, [{ ...first, ...ofDeleted }]);
    for (const copy of copies) {
      this.#world.time.after(random.between(0, SPREAD_MS), () => this.#sender.sendEvents(partition, [copy]));
    }
  }

  /** Half of them are never deleted. */
  #pickUser(): string {
    return this.#random.pick(['', 'v0', 'v1', 'v2', 'd0', 'd1']);
  }

  /** A time of receipt, in microseconds since 1970: up to two seconds before or after now. */
  #version(): number {
    const aheadMs = Math.floor(this.#random.between(-2_000, 2_000));
    return (this.#world.time.dateMs + aheadMs) * 1_000 + this.#microseconds();
  }

  /** No two versions are the same. */
  #microseconds(): number {
    return this.#sent % 1_000;
  }
}
