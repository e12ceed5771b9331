import { randomUUIDv7 } from 'node:crypto';
import type { ChangeRow } from '@sluice/shared/rows';
import { mergeKeyOf } from '@sluice/shared/rows/merged-user';
import type { Nobody } from '../reading/nobody.ts';
import type { Acceptance } from './acceptance.ts';
import { outgoingChange } from './change-row.ts';
import type { OutgoingRow } from './partition-rows.ts';

/** That an anonymous visitor is a user. */
export interface Link {
  readonly anonymousId: string;
  readonly userId: string;
}

/** Decides which links of a request get a row. */
export interface LinkRegister {
  /** Whether this link needs a row: none that names nobody does. It is asked for each time that something names both. */
  needsRow(link: Link): boolean;
}

/** Returns the link that something makes which names a visitor and a user; `undefined` where it makes none. */
export function linkOf(anonymousId: string | undefined, userId: string | undefined): Link | undefined {
  return anonymousId === undefined || userId === undefined ? undefined : { anonymousId, userId };
}

/** Whether the visitor or the user of a link is no one person. */
export function namesNobody({ anonymousId, userId }: Link, nobody: Nobody): boolean {
  return nobody.isNamedBy(anonymousId) || nobody.isNamedBy(userId);
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
