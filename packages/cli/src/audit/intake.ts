import type { KafkaMessage } from 'kafkajs';
import type { DeletedPersons } from './deleted-persons.ts';
import { isInShare, keyOf, mixOf, type Share, sliceOf, writeUuid } from './identifiers.ts';
import { WEEK_MICROS } from './join-changes.ts';
import { type Change, type LogRow, rowsOf } from './log-rows.ts';
import {
  DELETED_USER,
  IN_EVENTS,
  NO_CHANGE,
  OF_USER,
  type Place,
  REJECTED,
  SEEN,
  STAMPED,
  UNREADABLE,
  writeChange,
  writeEvent,
} from './records.ts';
import type { Slices } from './slices.ts';
import type { TopicRole } from './topic-logs.ts';

/** Which rows an audit looks at. */
export interface Selection extends Share {
  /** Empty: all. */
  readonly workspace: string;
}

/** Numbers the workspaces, so that records have one size. */
export class Workspaces {
  readonly #numbers = new Map<string, number>();
  readonly #names: string[] = [];

  constructor(names: readonly string[]) {
    for (const name of names) this.numberOf(name);
  }

  get names(): readonly string[] {
    return this.#names;
  }

  numberOf(name: string): number {
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    this.#numbers.set(name, this.#names.length);
    return this.#names.push(name) - 1;
  }

  nameOf(number: number): string {
    return this.#names[number] ?? '';
  }
}

export interface IntakeOptions extends Selection {
  readonly slices: number;
  readonly events: Slices;
  readonly changes: Slices;
  readonly workspaces: Workspaces;
  readonly deleted: DeletedPersons;
  /** Rows of these times of receipt are kept, in microseconds since 1970: the window and what is near to it. */
  readonly from: number;
  readonly to: number;
}

/** Writes the rows of the log into slices. */
export class Intake {
  readonly #options: IntakeOptions;
  readonly #uuid = Buffer.alloc(16);

  constructor(options: IntakeOptions) {
    this.#options = options;
  }

  take(role: TopicRole, partition: number, message: KafkaMessage): void {
    const offset = Number(message.offset);
    for (const row of rowsOf(message)) {
      if (row.received < this.#options.from || row.received >= this.#options.to) continue;
      if (!isSelected(row, { partition, offset, line: row.line }, this.#options)) continue;
      const place = { partition, offset, line: row.line };
      if (row.kind === 'events') this.#takeEvent(row, place);
      else this.#takeChange(row, role, place);
    }
  }

  #takeEvent(row: LogRow, place: Place): void {
    const { events, slices } = this.#options;
    const { event } = row;
    const placed = { ...this.#placed(row, place), ms: event?.ms ?? Number.NaN };
    if (!event) {
      writeEvent(events.add(place.offset % slices), undefined, { ...placed, flags: UNREADABLE });
      return;
    }
    writeUuid(event.uuid, this.#uuid, 0);
    const flags = event.isStamped ? STAMPED : 0;
    writeEvent(events.add(sliceOf(this.#uuid, 0, slices)), event.uuid, { ...placed, flags });
  }

  #takeChange(row: LogRow, role: TopicRole, place: Place): void {
    const { changes, slices } = this.#options;
    const { workspace, kind, change } = row;
    const flags = (role === 'events' ? IN_EVENTS : 0) | (row.person === '' ? 0 : OF_USER);
    const write = (key: Buffer, week: number) =>
      writeChange(changes.add(mixOf(key, 0) % slices), key, { ...this.#placed(row, place), flags, week });
    if (kind === 'rejected') write(Buffer.from(row.deadLetter(), 'hex'), REJECTED);
    else if (!change) write(keyOf(role, String(place.partition), String(place.offset), String(place.line)), NO_CHANGE);
    else write(keyOfChange(workspace, change), weekOf(change, row.received));
  }

  #placed(row: LogRow, place: Place) {
    const { deleted, workspaces } = this.#options;
    return {
      ...place,
      workspace: workspaces.numberOf(row.workspace),
      received: row.received,
      deleted: Math.max(
        row.person === '' ? 0 : deleted.versionOf(row.workspace, row.person),
        row.merged === undefined ? 0 : deleted.versionOf(row.workspace, row.merged),
      ),
    };
  }
}

/** Whether an audit looks at a row. What is no row that can be read has no workspace, and its place is its identifier. */
export function isSelected({ workspace, event, change, kind, deadLetter }: LogRow, place: Place, selection: Selection) {
  if (selection.workspace !== '' && workspace !== selection.workspace) return false;
  if (selection.shares === 1) return true;
  if (event) return isInShare(selection, event.uuid);
  if (change) return isInShare(selection, `${workspace}\0${change.entity}\0${change.id}`);
  return isInShare(selection, kind === 'rejected' ? deadLetter() : `${place.partition}/${place.offset}/${place.line}`);
}

function keyOfChange(workspace: string, { entity, id, operation, property }: Change): Buffer {
  const isOfEntity = operation === 'seen' || operation === 'delete';
  return isOfEntity ? keyOf(workspace, entity, id) : keyOf(workspace, entity, id, property);
}

/** The register that a change is in; of the two of a user, that of the week. */
export function weekOf({ entity, operation }: Change, received: number): number {
  if (operation === 'seen') return SEEN;
  if (operation === 'delete') return DELETED_USER;
  if (operation !== 'set_once') return 0;
  return entity === 'user' ? Math.floor(received / WEEK_MICROS) : 1;
}
