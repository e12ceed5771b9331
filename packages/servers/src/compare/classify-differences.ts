import type { ComparedRow, NamedEvent, User, UserDeletion } from './compared-server.ts';
import type { ComparedTable } from './compared-tables.ts';
import { contentOf, type DifferentKey, ofBoth, type Servers } from './different-keys.ts';

/** How many entities are remembered that events which are listed apart name. */
const NAMED_MAX = 1_000_000;

/**
 * `apart`: an event whose key was sent again around the deletion of its first user, or what such an event names. `none`: it is
 * deleted by now.
 */
type Verdict = 'differs' | 'apart' | 'none';

/** Decides which keys differ, and which only seem to, or may. */
export class DifferenceClassifier {
  readonly #servers: Servers;
  readonly #until: number;
  /** Users, organizations and memberships that events name which are listed apart. */
  readonly #namedApart = new Set<string>();

  /** @param until what was received later is left out, in microseconds since 1970 */
  constructor(servers: Servers, until: number) {
    this.#servers = servers;
    this.#until = until;
  }

  /** Returns those keys of a table that differ, and those that may. @throws ClickHouse's errors */
  async classify(table: ComparedTable, keys: readonly DifferentKey[]) {
    const older = keys.filter(({ rows }) => rows.flat().every(({ newest }) => newest <= this.#until));
    const isOfEvents = table.name === 'events';
    const events = isOfEvents ? await this.#eventsOf(older) : new Map<string, NamedEvent[]>();
    const deletions = await this.#deletionsOf([
      ...older.flatMap(({ rows }) => rows.flat()),
      ...[...events.values()].flat(),
    ]);
    const verdicts = older.map((key) => {
      const verdict = this.#verdictOf(key, deletions, events.get(eventKey(key)));
      if (verdict === 'apart') for (const event of events.get(eventKey(key)) ?? []) this.#noteNamed(event);
      const isNamed = table.name === 'entities' && this.#namedApart.has(entityKey(key.workspace, key.key));
      return { key, verdict: verdict === 'differs' && isNamed ? 'apart' : verdict };
    });
    const those = (wanted: Verdict) => verdicts.filter(({ verdict }) => verdict === wanted).map(({ key }) => key);
    return { different: those('differs'), apart: those('apart') };
  }

  /** @param events all with the uuid of the key; undefined for a row that is no event */
  #verdictOf(
    { rows }: DifferentKey,
    deletions: ReadonlyMap<string, number>,
    events: readonly NamedEvent[] | undefined,
  ): Verdict {
    const lastOf = (row: User & { readonly deleted?: number }) =>
      Math.max(deletions.get(userKey(row)) ?? 0, row.deleted ?? 0);
    const isShown = (row: ComparedRow) => row.user === '' || row.accepted > lastOf(row);
    const [one, other] = rows.map((found) => found.filter(isShown));
    if (contentOf(one ?? []) === contentOf(other ?? [])) return 'none';
    return events?.some((event) => lastOf(event) > 0) ? 'apart' : 'differs';
  }

  async #eventsOf(keys: readonly DifferentKey[]): Promise<Map<string, NamedEvent[]>> {
    const uuids = keys.map(({ workspace, key }) => ({ workspace, uuid: String(key[1]) }));
    const found = await ofBoth(this.#servers, (server) => server.eventsOf(uuids));
    return Map.groupBy(found.flat(), ({ workspace, uuid }) => JSON.stringify([workspace, uuid]));
  }

  /** Returns the last deletion of each user that either server knows now. */
  async #deletionsOf(rows: readonly User[]): Promise<Map<string, number>> {
    const users = new Map(rows.filter(({ user }) => user !== '').map((row) => [userKey(row), row]));
    const found = await ofBoth(this.#servers, (server) => server.lastDeletions([...users.values()]));
    return newestOf(found.flat());
  }

  #noteNamed({ workspace, user, organization }: NamedEvent): void {
    if (this.#namedApart.size >= NAMED_MAX) return;
    const note = (...key: string[]) => this.#namedApart.add(entityKey(workspace, key));
    if (user !== '') note('user', user, '');
    if (organization !== '') note('organization', organization, '');
    if (user === '' || organization === '') return;
    note('membership', user, organization);
    note('member', organization, user);
  }
}

/** Returns the newest deletion of each user. */
export function newestOf(deletions: readonly UserDeletion[]): Map<string, number> {
  const newest = new Map<string, number>();
  for (const deletion of deletions) {
    const key = userKey(deletion);
    newest.set(key, Math.max(newest.get(key) ?? 0, deletion.version));
  }
  return newest;
}

export function userKey({ workspace, user }: User): string {
  return JSON.stringify([workspace, user]);
}

function entityKey(workspace: string, key: readonly (string | number)[]): string {
  return JSON.stringify([workspace, ...key]);
}

/** The key by which {@link DifferenceClassifier} finds an event. */
function eventKey({ workspace, key }: DifferentKey): string {
  return JSON.stringify([workspace, String(key[1])]);
}
