import type { QueryConfig } from '../config.ts';
import {
  DELETIONS_FRESH_MS,
  type QueryRunner,
  RequestQueries,
  RequestStore,
  type Stores,
  TimeBudget,
  withDeletions,
} from '../store/store.ts';
import type { EventNote } from '../stream/stream.ts';

/** How long the users of one look-up may be, in characters of an address: ClickHouse takes no longer parameter. */
const USERS_CHARACTERS_MAX = 100_000;

/** What decides whether an event may be sent. */
export interface SendableEvent extends EventNote {
  readonly timestampMs: number;
  /** Its user or visitor, as a deletion names them; undefined where it has neither. */
  readonly person: string | undefined;
}

export interface ShownEventsOptions {
  readonly config: Pick<QueryConfig, 'QUERY_TIMEOUT_MS'>;
  readonly queryRunner: Pick<QueryRunner, 'all'>;
  readonly stores: Stores;
}

/**
 * Decides again, just before events are sent, which of them are still shown: between the read and the attempt the receiver may have
 * taken its time. Users and visitors are looked up among all deletions: the events in memory may have been erased meanwhile, and then the
 * deletion is not pending any more. The look-up takes a slot of the workspace, as its pages do.
 */
export class ShownEvents {
  readonly #options: ShownEventsOptions;

  constructor(options: ShownEventsOptions) {
    this.#options = options;
  }

  /**
   * Returns those of some events of a workspace that are neither deleted nor expired.
   *
   * @throws {Problem} when that is not known
   */
  async among<Event extends SendableEvent>(workspace: string, events: readonly Event[]): Promise<readonly Event[]> {
    const store = new RequestStore(this.#options.stores);
    const shown = await this.#withoutDeleted(workspace, events, store);
    const { visibility } = await store.current();
    const keptFromMs = (await visibility.keptFrom(workspace)) ?? Number.NEGATIVE_INFINITY;
    return shown.filter(({ timestampMs }) => timestampMs >= keptFromMs);
  }

  async #withoutDeleted<Event extends SendableEvent>(
    workspace: string,
    events: readonly Event[],
    store: RequestStore,
  ): Promise<readonly Event[]> {
    const { config, queryRunner } = this.#options;
    const ofPersons = events.filter(({ person }) => person !== undefined);
    const isOld = ({ shownAtMs }: Event) => performance.now() - shownAtMs > DELETIONS_FRESH_MS;
    if (!ofPersons.some(isOld)) return events;
    const budget = new TimeBudget(config.QUERY_TIMEOUT_MS);
    const queries = new RequestQueries(queryRunner, { workspace, store }, budget);
    const persons = new Set(ofPersons.map(({ person }) => person as string));
    const deletions = await Promise.all(
      inLookUps([...persons]).map((some) => withDeletions(queries, some, async () => undefined)),
    );
    const isDeleted = ({ person, receivedAtUs }: Event) =>
      person !== undefined && deletions.some(([, known]) => known.hide(person, receivedAtUs));
    return events.filter((event) => !isDeleted(event));
  }
}

/** Distributes users over look-ups that are not too long. */
function inLookUps(users: readonly string[]): string[][] {
  const lookUps: string[][] = [];
  let characters = Number.POSITIVE_INFINITY;
  for (const user of users) {
    const own = encodeURIComponent(JSON.stringify(user)).length + 3;
    characters += own;
    if (characters <= USERS_CHARACTERS_MAX) lookUps.at(-1)?.push(user);
    else {
      lookUps.push([user]);
      characters = own;
    }
  }
  return lookUps;
}
