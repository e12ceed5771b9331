import { type Database, readText, readWide } from './database.ts';
import type { DeletedPersons } from './deleted-persons.ts';
import { copyStoredUuid, KEY_BYTES, sliceOf } from './identifiers.ts';
import type { Selection, Workspaces } from './intake.ts';
import { WEEK_MICROS } from './join-changes.ts';
import { SEEN, writeRegister, writeStored } from './records.ts';
import type { Slices } from './slices.ts';

/** Reads the deletions that may hide rows of the window. @throws ClickHouse's errors */
export async function readDeletions(
  database: Database,
  { workspace }: Selection,
  since: number,
  deleted: DeletedPersons,
): Promise<void> {
  await database.stream('read-deletions', { workspace, since }, (bytes, at) => {
    const name = readText(bytes, at);
    const person = name && readText(bytes, name.end);
    if (!person || person.end + 8 > bytes.length) return -1;
    deleted.add(name.text, person.text, readWide(bytes, person.end));
    return person.end + 8;
  });
}

/**
 * Writes what is stored with a receipt in a time into slices.
 *
 * @param from in microseconds since 1970
 * @throws ClickHouse's errors
 */
export async function readStoredEvents(
  database: Database,
  { workspace, share, shares }: Selection,
  { from, to }: { readonly from: number; readonly to: number },
  { slices, count, workspaces }: { readonly slices: Slices; readonly count: number; readonly workspaces: Workspaces },
): Promise<void> {
  const uuid = Buffer.alloc(KEY_BYTES);
  await database.stream('read-events', { workspace, share, shares, from, to }, (bytes, at) => {
    const name = readText(bytes, at);
    if (!name || name.end + 32 > bytes.length) return -1;
    const ms = readWide(bytes, name.end);
    copyStoredUuid(bytes, name.end + 8, uuid, 0);
    const received = readWide(bytes, name.end + 24);
    const record = { workspace: workspaces.numberOf(name.text), ms, received };
    writeStored(slices.add(sliceOf(uuid, 0, count)), uuid, record);
    return name.end + 32;
  });
}

/** Writes what changed of users and organizations since a time into slices. @throws ClickHouse's errors */
export async function readRegisters(
  database: Database,
  { workspace, share, shares }: Selection,
  since: number,
  { slices, count }: { readonly slices: Slices; readonly count: number },
): Promise<void> {
  const take = (bytes: Buffer, at: number) => {
    const end = at + KEY_BYTES + 12;
    if (end > bytes.length) return -1;
    const week = bytes.readUInt32LE(at + KEY_BYTES);
    writeRegister(slices.add(sliceOf(bytes, at, count)), { bytes, at }, { week, version: readWide(bytes, end - 8) });
    return end;
  };
  const parameters = { workspace, share, shares, since };
  await database.stream('read-registers', { ...parameters, week: Math.floor(since / WEEK_MICROS) }, take);
  await database.stream('read-entities', { ...parameters, seen: SEEN }, take);
}
