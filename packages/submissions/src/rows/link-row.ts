import { randomUUIDv7 } from 'node:crypto';
import type { ChangeRow } from '@sluice/shared/rows';
import { isMergeKey, mergeKeyOf } from '@sluice/shared/rows/merged-user';
import type { Acceptance } from './acceptance.ts';
import { outgoingChange } from './change-row.ts';
import type { OutgoingRow } from './partition-rows.ts';

/** What clients send in place of an identifier, in lower case. Whoever is named so is no one person, and is never linked. */
export const NOBODY: readonly string[] = [
  ...['null', 'undefined', 'none', 'nil', 'nan', 'n/a', 'true', 'false', '[object object]'],
  ...['anonymous', 'anon', 'guest', 'visitor', 'unknown', 'unidentified', 'not_authenticated'],
  ...['id', 'user', 'user_id', 'userid', 'distinct_id', 'distinctid', 'anonymous_id', 'anonymousid', '-1'],
];

const NAMES_OF_NOBODY: ReadonlySet<string> = new Set(NOBODY);
const LENGTH_MAX = Math.max(...NOBODY.map(({ length }) => length));

/** Zeros, and UUIDs of zeros. */
const ZEROS = /^[0-]+$/;

/** Whether an identifier means nobody: also what is left empty, and what would name a merged user in place of a visitor. */
export function meansNobody(id: string): boolean {
  if (isMergeKey(id)) return true;
  const trimmed = id.trim();
  if (trimmed === '' || ZEROS.test(trimmed)) return true;
  return trimmed.length <= LENGTH_MAX && NAMES_OF_NOBODY.has(trimmed.toLowerCase());
}

/** That an anonymous visitor is a user. */
export interface Link {
  readonly anonymousId: string;
  readonly userId: string;
}

/** Decides which links of a request get a row. */
export interface LinkRegister {
  /** Whether this link needs a row. It is asked for each time that something names both, unless one of them means nobody. */
  needsRow(link: Link): boolean;
}

/** Returns the link that something makes which names a visitor and a user; `undefined` where it makes none. */
export function linkOf(anonymousId: string | undefined, userId: string | undefined): Link | undefined {
  if (anonymousId === undefined || userId === undefined) return undefined;
  return meansNobody(anonymousId) || meansNobody(userId) ? undefined : { anonymousId, userId };
}

/** Creates the row of a link that something makes which names both. */
export function linkRow(link: Link, { workspace, version }: Pick<Acceptance, 'workspace' | 'version'>): OutgoingRow {
  return outgoingChange(visitorRow('link', link.anonymousId, link.userId, { workspace, version }));
}

/** Creates the row of what somebody says: whose a visitor is, or without a user, that it is nobody's. */
export function saidRow(
  { anonymousId, userId }: Pick<Link, 'anonymousId'> & Partial<Link>,
  acceptance: Pick<Acceptance, 'workspace' | 'version'>,
): OutgoingRow {
  return outgoingChange(visitorRow('say', anonymousId, userId, acceptance));
}

/** Creates the row of what somebody says: whom a user became, or without `into`, that it is itself. */
export function mergeRow(
  { userId, into }: { readonly userId: string; readonly into?: string },
  acceptance: Pick<Acceptance, 'workspace' | 'version'>,
): OutgoingRow {
  return outgoingChange(visitorRow('say', mergeKeyOf(userId), into, acceptance));
}

function visitorRow(
  operation: 'link' | 'say',
  id: string,
  userId: string | undefined,
  { workspace, version }: Pick<Acceptance, 'workspace' | 'version'>,
): ChangeRow {
  const row: ChangeRow = {
    ...{ workspace_id: workspace, kind: 'visitor', id, operation, version },
    change_id: randomUUIDv7(),
  };
  return userId === undefined ? row : { ...row, user_id: userId };
}
