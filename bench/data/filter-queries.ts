import { ArgumentsError } from '@sluice/shared/config/command-line';
import type { BenchDatabase } from '../processes/database.ts';
import { WORKSPACES } from './traffic.ts';

/** The workspace of the queries: the one with most of the events. */
export const WORKSPACE = WORKSPACES[0];

/** How many of the events have the value of a filter: one in five hundred or more, about a hundred or fewer, or none. */
type Matches = 'many' | 'few' | 'none';

export const MATCHES: readonly Matches[] = ['many', 'few', 'none'];

/** A filter of `GET /events`, and its name in the table of figures. */
export interface FilterQuery {
  readonly name: string;
  readonly matches: Matches;
  readonly parameters: Readonly<Record<string, string>>;
}

/** How deep the deepest page is, in events of the workspace. */
export const DEPTH = 1_000_000;

/** @throws {ArgumentsError} when there will be no page of that depth among so many events of all workspaces */
export function requireDepth(events: number): void {
  const least = 1.5 * DEPTH;
  if (events < least) throw new ArgumentsError(`events must be ${least} at least, for a page at a depth of ${DEPTH}`);
}

export const NEWEST: FilterQuery = { name: 'newest page', matches: 'many', parameters: {} };

/**
 * One query for each filter, with values that many, few and no events of a workspace have. The values are looked up in
 * the stored events.
 */
export async function filterQueries(database: BenchDatabase, workspace: string): Promise<readonly FilterQuery[]> {
  const user = (events: number) => identifierWith(database, workspace, 'user_id', events);
  const organization = (events: number) => identifierWith(database, workspace, 'group_id', events);
  const anonymousId = await identifierWith(database, workspace, 'anonymous_id', 100);
  const instanceId = await identifierWith(database, workspace, 'instance_id', 100);
  // An event in the middle of the table: this order has nothing to do with time.
  const [{ uuid = '', requestId = '' } = {}] = await database.read<{ uuid?: string; requestId?: string }>(
    `SELECT toString(uuid) AS uuid, JSONExtractString(properties, 'requestId') AS requestId
     FROM events WHERE workspace_id = {workspace:String} ORDER BY instance_id DESC, cityHash64(uuid) LIMIT 1`,
    { workspace },
  );
  const query = (name: string, matches: Matches, parameters: FilterQuery['parameters']) => ({
    name,
    matches,
    parameters,
  });
  return [
    query('user, many', 'many', { userId: 'user-0' }),
    query('user, 160', 'few', { userId: await user(160) }),
    query('user, 6', 'few', { userId: await user(6) }),
    query('user, none', 'none', { userId: 'nobody' }),
    query('organization, many', 'many', { groupId: 'org-0' }),
    query('organization, 160', 'few', { groupId: await organization(160) }),
    query('organization, 40', 'few', { groupId: await organization(40) }),
    query('organization, none', 'none', { groupId: 'nobody' }),
    query('anonymous id, 100', 'few', { anonymousId }),
    query('instance id, 100', 'few', { instanceId }),
    query('event name, most', 'many', { event: 'page_viewed' }),
    query('event name, least', 'many', { event: 'sso_enabled' }),
    query('event name, none', 'none', { event: 'nothing_happened' }),
    query('uuid', 'few', { uuid }),
    query('uuid, none', 'none', { uuid: '00000000-0000-7000-8000-000000000000' }),
    query('property, a quarter of all', 'many', { 'properties.plan': 'team' }),
    query('property, 1 of 500', 'many', { 'properties.seats': '77' }),
    query('property, few', 'few', { 'properties.path': '/teams/5000/members' }),
    query('property, one', 'few', { 'properties.requestId': requestId }),
    query('property, none', 'none', { 'properties.plan': 'nothing' }),
    query('nested property, many', 'many', { 'properties.device.os': 'Linux' }),
  ];
}

/** Returns the identifier of a workspace that has about this many events. */
async function identifierWith(
  database: BenchDatabase,
  workspace: string,
  column: string,
  events: number,
): Promise<string> {
  const [found] = await database.read<{ id: string }>(
    `SELECT {column:Identifier} AS id FROM events WHERE workspace_id = {workspace:String} AND id != ''
     GROUP BY id ORDER BY abs(toInt64(count()) - {events:Int64}), id LIMIT 1`,
    { workspace, column, events },
  );
  return found?.id ?? '';
}
