import {
  areAnyMerged,
  type KnownMerges,
  type QueryContext,
  type QueryRunner,
  queryStringOf,
  type Sql,
  type Tables,
  VALUE_CHARACTERS_MAX,
} from '../../store/store.ts';
import { groupsOf } from '../entities/candidates.ts';
import { becameSql } from '../owners/persons.ts';
import { type EventRow, textOf } from './event-record.ts';
import type { EventSelection } from './event-selection.ts';

/**
 * Returns the context of queries that see persons, if a selection asks for them, or its workspace has set that: `arePersons`, and besides whether
 * any visitor is linked, or any user merged.
 */
export async function withIdentity<Context extends QueryContext>(
  queryRunner: Pick<QueryRunner, 'all' | 'identities' | 'defaultIdentities'>,
  { identity }: Pick<EventSelection, 'identity'>,
  context: Context,
): Promise<Context> {
  const seen = identity ?? (await queryRunner.defaultIdentities.of(context.workspace));
  if (seen === 'raw') return context;
  const { areLinked, areMerged } = await queryRunner.identities(context);
  if (!areLinked) return { ...context, arePersons: true };
  const merges = areMerged ? await readMerges(queryRunner, context) : undefined;
  return { ...context, arePersons: true, isLinked: true, merges };
}

/** How many merges statements name. */
export const NAMED_MERGES_MAX = 1_000;

/** Reads which users became others: named in statements, they cost little, where each would find them by itself. */
export async function readMerges(queryRunner: Pick<QueryRunner, 'all'>, context: QueryContext): Promise<KnownMerges> {
  const rows = await queryRunner.all({
    ...{ kind: 'owners', ...context },
    statement: (tables) => ({
      sql: `SELECT merged, person FROM ${tables.merges} LIMIT {rows:UInt64}`,
      params: { rows: NAMED_MERGES_MAX + 1 },
    }),
  });
  const merges = rows.map(([merged, person]) => ({ merged: merged as string, person: person as string }));
  const lists = [merges.map(({ merged }) => merged), merges.map(({ person }) => person)];
  const areFew = lists.every((list) => queryStringOf({}, { list }).length <= VALUE_CHARACTERS_MAX);
  return areFew && merges.length <= NAMED_MERGES_MAX ? merges : 'many';
}

/** The member of a record with the user of its person. */
export const LINKED_USER = 'linkedUserId';

/** Finds whose the events of a request are. */
export class OwnersOfVisitors {
  readonly #queryRunner: Pick<QueryRunner, 'all'>;
  readonly #context: QueryContext;
  /** The user of the person of each of them, where the request asks for the events of one user and no user is merged. */
  readonly #user: string | undefined;
  /** By anonymous id, the person of its user; the empty text where a visitor is nobody's. */
  readonly #known = new Map<string, string>();
  /** Whom users became, or else themselves: of all that are named, or of those that were looked up. */
  readonly #became: Map<string, string>;

  constructor(queryRunner: Pick<QueryRunner, 'all'>, context: QueryContext, selection: Pick<EventSelection, 'fields'>) {
    this.#queryRunner = queryRunner;
    this.#context = context;
    const { merges = [] } = context;
    this.#user = areAnyMerged(merges) ? undefined : onlyUser(selection);
    this.#became = new Map(merges === 'many' ? [] : merges.map(({ merged, person }) => [merged, person]));
  }

  /** Returns the user of the person of each event, in their order; the empty text for nobody. */
  async ofEvents(events: readonly EventRow[]): Promise<readonly string[]> {
    const user = this.#user;
    if (user !== undefined) return events.map(() => user);
    const isOfUser = (event: EventRow) => textOf(event, 'userId') !== '';
    const visitors = events.filter((event) => !isOfUser(event)).map((event) => textOf(event, 'anonymousId'));
    const users = events.filter(isOfUser).map((event) => textOf(event, 'userId'));
    if (this.#context.isLinked) await this.#find(visitors, this.#known, ownersQuery);
    if (this.#context.merges === 'many') await this.#find(users, this.#became, becameQuery);
    return events.map((event) => {
      const sent = textOf(event, 'userId');
      return sent === '' ? (this.#known.get(textOf(event, 'anonymousId')) ?? '') : this.#became.get(sent) || sent;
    });
  }

  /** Finds what is not known yet. */
  async #find(
    asked: readonly string[],
    known: Map<string, string>,
    query: (tables: Tables, ids: readonly string[]) => Sql,
  ): Promise<void> {
    const open = new Set(asked.filter((id) => id !== '' && !known.has(id)));
    for (const ids of groupsOf([...open])) {
      for (const id of ids) known.set(id, '');
      const rows = await this.#queryRunner.all({
        // The page keeps its slot meanwhile.
        ...{ kind: 'owners', urgent: true, ...this.#context },
        statement: (tables) => query(tables, ids),
      });
      for (const [id, user] of rows) known.set(id as string, user as string);
    }
  }
}

function ownersQuery(tables: Tables, ids: readonly string[]): Sql {
  const owners = tables.owners({ visitors: 'anonymous_id IN {ids:Array(String)}' });
  return { sql: `SELECT anonymous_id, ${becameSql(tables, 'user_id')} FROM ${owners}`, params: { ids } };
}

function becameQuery(tables: Tables, ids: readonly string[]): Sql {
  return { sql: `SELECT merged, person FROM ${tables.merges} WHERE merged IN {ids:Array(String)}`, params: { ids } };
}

/** Returns the user whose events alone a selection has, where it names one. */
export function onlyUser({ fields }: Pick<EventSelection, 'fields'>): string | undefined {
  for (const { field, condition } of fields) {
    if (field === 'userId' && condition.operator === 'eq') return condition.value;
  }
  return undefined;
}
