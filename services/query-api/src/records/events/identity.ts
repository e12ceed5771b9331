import type { QueryContext, QueryRunner } from '../../store/store.ts';
import { groupsOf } from '../entities/candidates.ts';
import { type EventRow, textOf } from './event-record.ts';
import type { EventSelection } from './event-selection.ts';

/**
 * Returns the context of queries that see persons, if a selection asks for them, or its workspace has set that: `arePersons`, and `isLinked` if
 * any visitor is linked.
 */
export async function withIdentity<Context extends QueryContext>(
  queryRunner: Pick<QueryRunner, 'hasLinks' | 'identities'>,
  { identity }: Pick<EventSelection, 'identity'>,
  context: Context,
): Promise<Context> {
  const seen = identity ?? (await queryRunner.identities.of(context.workspace));
  return seen === 'raw' ? context : { ...context, arePersons: true, isLinked: await queryRunner.hasLinks(context) };
}

/** The member of a record with the user of its person. */
export const LINKED_USER = 'linkedUserId';

/** Finds whose the visitors of a request's events are. */
export class OwnersOfVisitors {
  readonly #queryRunner: Pick<QueryRunner, 'all'>;
  readonly #context: QueryContext;
  /** The user of the person of each of them, where the request asks for the events of one user. */
  readonly #user: string | undefined;
  /** By anonymous id; the empty text where a visitor is nobody's. */
  readonly #known = new Map<string, string>();

  constructor(queryRunner: Pick<QueryRunner, 'all'>, context: QueryContext, selection: Pick<EventSelection, 'fields'>) {
    this.#queryRunner = queryRunner;
    this.#context = context;
    this.#user = onlyUser(selection);
  }

  /** Returns the user of the person of each event, in their order; the empty text for nobody. */
  async ofEvents(events: readonly EventRow[]): Promise<readonly string[]> {
    const user = this.#user;
    if (user !== undefined) return events.map(() => user);
    const visitors = events
      .filter((event) => textOf(event, 'userId') === '')
      .map((event) => textOf(event, 'anonymousId'));
    const open = new Set(visitors.filter((id) => id !== '' && !this.#known.has(id)));
    if (this.#context.isLinked) await this.#find([...open]);
    return events.map((event) => textOf(event, 'userId') || (this.#known.get(textOf(event, 'anonymousId')) ?? ''));
  }

  async #find(visitors: readonly string[]): Promise<void> {
    for (const ids of groupsOf(visitors)) {
      for (const id of ids) this.#known.set(id, '');
      const rows = await this.#queryRunner.all({
        // The page keeps its slot meanwhile.
        ...{ kind: 'owners', urgent: true, ...this.#context },
        statement: (tables) => ({
          sql: `SELECT anonymous_id, user_id FROM ${tables.owners({ visitors: 'anonymous_id IN {ids:Array(String)}' })}`,
          params: { ids },
        }),
      });
      for (const [id, user] of rows) this.#known.set(id as string, user as string);
    }
  }
}

/** Returns the user whose events alone a selection has, where it names one. */
function onlyUser({ fields }: Pick<EventSelection, 'fields'>): string | undefined {
  for (const { field, condition } of fields) {
    if (field === 'userId' && condition.operator === 'eq') return condition.value;
  }
  return undefined;
}
