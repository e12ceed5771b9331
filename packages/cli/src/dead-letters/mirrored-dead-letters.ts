import type {
  DeadLetterState,
  DeadLetters,
  ListOptions,
  StoredDeadLetter,
  WholeDeadLetter,
} from '@sluice/storage/dead-letters';

/** The dead letters of one ClickHouse server of several. */
export interface ServerDeadLetters {
  readonly name: string;
  readonly deadLetters: DeadLetters;
}

/** What the command needs of the dead letters of one server, or of several. */
export type Letters = Pick<DeadLetters, 'list' | 'read' | 'replay' | 'requireEngines'>;

/**
 * The dead letters of several ClickHouse servers that are fed from one log: each has the same ones, but for what it has not read
 * yet, and recorded them at a time of its own. One counts as replayed when any server says so. Servers that do not answer are
 * left out, and named by {@link away}.
 */
export class MirroredDeadLetters implements Letters {
  readonly #servers: readonly ServerDeadLetters[];
  readonly #away = new Map<string, Error>();
  #all: Promise<readonly DeadLetterState[]> | undefined;

  constructor(servers: readonly ServerDeadLetters[]) {
    this.#servers = servers;
  }

  /** The servers that have not answered, with the reasons. */
  get away(): ReadonlyMap<string, Error> {
    return this.#away;
  }

  /**
   * Returns the newest first, by the time at which the last server recorded them. What is recorded after the first call is
   * left out.
   *
   * @throws when no server answers
   */
  async list({ limit, replayed, after }: ListOptions): Promise<StoredDeadLetter[]> {
    this.#all ??= this.#readAll();
    const wanted = (await this.#all).filter(
      (place) => (replayed || place.replayedAt === null) && (after === undefined || compare(place, after) > 0),
    );
    const page = wanted.slice(0, limit);
    const found = await this.#ofEach((deadLetters) => deadLetters.listThese(page.map(({ id }) => id)));
    const letters = new Map(found.flatMap(({ result }) => result.map((letter) => [letter.id, letter])));
    return page.flatMap((place) => {
      const letter = letters.get(place.id);
      return letter ? [{ ...letter, ...place }] : [];
    });
  }

  /** @throws when no server answers */
  async read(id: string): Promise<WholeDeadLetter | undefined> {
    const found = await this.#ofEach((deadLetters) => deadLetters.read(id));
    const states = found.flatMap(({ result }) => (result ? [result.deadLetter] : []));
    const [first] = found.flatMap(({ result }) => (result ? [result] : []));
    return first && { ...first, deadLetter: { ...first.deadLetter, ...stateOf(states) } };
  }

  /** Replays it once, and marks it on all servers that have it and answer. */
  async replay(id: string): Promise<boolean> {
    const found = await this.#ofEach((deadLetters) => deadLetters.read(id));
    const having = found.flatMap(({ server, result }) => (result ? [{ server, whole: result }] : []));
    const [first] = having;
    if (!first) return false;
    await first.server.deadLetters.send(first.whole);
    const marked = await this.#ofEach(
      async (deadLetters, { name }) => {
        const whole = having.find(({ server }) => server.name === name)?.whole;
        if (whole) await deadLetters.markReplayed(whole);
      },
      having.map(({ server }) => server),
    );
    return marked.length > 0;
  }

  async requireEngines(): Promise<void> {
    await this.#ofEach((deadLetters) => deadLetters.requireEngines());
  }

  async #readAll(): Promise<readonly DeadLetterState[]> {
    const lists = await this.#ofEach((deadLetters) => deadLetters.states());
    const byId = Map.groupBy(
      lists.flatMap(({ result }) => result),
      ({ id }) => id,
    );
    return [...byId].map(([id, same]) => ({ id, ...stateOf(same) })).sort(compare);
  }

  /** Returns what each server that answers has. @throws the first error when none does */
  async #ofEach<Result>(
    read: (deadLetters: DeadLetters, server: ServerDeadLetters) => Promise<Result>,
    servers = this.#servers,
  ): Promise<{ readonly server: ServerDeadLetters; readonly result: Result }[]> {
    const results: { server: ServerDeadLetters; result: Result }[] = [];
    const answering = servers.filter(({ name }) => !this.#away.has(name));
    await Promise.all(
      answering.map(async (server) => {
        try {
          results.push({ server, result: await read(server.deadLetters, server) });
        } catch (error) {
          this.#away.set(server.name, error as Error);
        }
      }),
    );
    const [reason] = this.#away.values();
    if (results.length === 0 && reason) throw reason;
    return results.sort((one, other) => servers.indexOf(one.server) - servers.indexOf(other.server));
  }
}

/** When a letter was recorded last, and when it was replayed, if it was anywhere. */
function stateOf(same: readonly DeadLetterState[]): Omit<DeadLetterState, 'id'> {
  const [recordedAt = ''] = same
    .map((letter) => letter.recordedAt)
    .toSorted()
    .reverse();
  const [replayedAt = null] = same
    .flatMap((letter) => letter.replayedAt ?? [])
    .toSorted()
    .reverse();
  return { recordedAt, replayedAt };
}

type Place = Pick<StoredDeadLetter, 'recordedAt' | 'id'>;

/** The newest first, as texts of one form compare. */
function compare(one: Place, other: Place): number {
  const [first, second] = [`${one.recordedAt} ${one.id}`, `${other.recordedAt} ${other.id}`];
  if (first === second) return 0;
  return first < second ? 1 : -1;
}
