import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { claimDatabase, readGroups, refuseOtherGroups } from './claim-database.ts';
import { fillingCommand } from './identity.ts';
import type { Place } from './replicas.ts';
import { STATEMENTS } from './statements.ts';

/** Whose a database is. */
export interface DatabaseOwner {
  /** The consumer group of its writers. */
  readonly group: string;
  /** The name of its server in the file of servers; empty without one. */
  readonly server: string;
  /** The range of partitions that it stores, such as `0-23`, or `all`. */
  readonly partitions: string;
}

/** What a database says of itself. */
interface IdentityRow {
  readonly id: string;
  /** The name of the ClickHouse server that answered: its UUID, host and port. */
  readonly answering: string;
  readonly server: string;
  readonly groupId: string;
  readonly partitions: string;
  readonly state: string;
  readonly detail: string;
}

/** The database is that of another server, or the group of this one feeds another database too. */
export class DatabaseMismatch extends Error {
  override readonly name = 'DatabaseMismatch';
}

/** Rows are being copied into the database, and nothing else may be stored until that is done. */
export class DatabaseFilling extends Error {
  override readonly name = 'DatabaseFilling';
}

/** The database of this writer. It has an id, or several, which the offsets of its group carry as metadata. */
export class OwnDatabase {
  readonly #client: ClickHouseClient;
  readonly #owner: DatabaseOwner;
  readonly #otherClients: readonly ClickHouseClient[];
  readonly #isShared: boolean;
  #ids: readonly string[] = [];
  #others: readonly Place[] = [];

  /**
   * @param others of the other replicas of the database. Default: there are none
   * @param isShared whether replicas share its rows, and any of them may answer. Default: no
   */
  constructor(
    client: ClickHouseClient,
    owner: DatabaseOwner,
    others: readonly ClickHouseClient[] = [],
    isShared = false,
  ) {
    this.#isShared = isShared;
    this.#client = client;
    this.#owner = owner;
    this.#otherClients = others;
  }

  /**
   * Makes sure that the database is that of the owner, and records so in a new one. What may be there once is recorded at each replica before it
   * is read there: two that were looked at alone could each have nothing.
   *
   * @returns the name of the ClickHouse server that has the database; empty where any may answer
   * @throws {GroupMismatch}
   * @throws {DatabaseMismatch} when it is that of another server, or has other partitions; or two addresses lead to one replica
   * @throws ClickHouse's errors
   */
  async claim(): Promise<string> {
    const own = await this.#claimAt(this.#client);
    const ids = new Set(own.ids);
    const others: Place[] = [];
    for (const client of this.#otherClients) {
      const other = await this.#claimAt(client);
      others.push({ client, server: other.server });
      for (const id of other.ids) ids.add(id);
    }
    this.#ids = [...ids];
    this.#others = others;
    requireDistinct([own.server, ...others.map(({ server }) => server)]);
    return own.server;
  }

  /** The other replicas, as they answered when the database was claimed. */
  get others(): readonly Place[] {
    return this.#others;
  }

  /** Whether nothing is to be recorded at a replica, which may be read-only now. Where a server is alone, that is seen by the recording itself. */
  async #isClaimed(client: ClickHouseClient): Promise<boolean> {
    if (this.#otherClients.length === 0) return false;
    return (await readGroups(client)).length > 0 && (await read(client)).length > 0;
  }

  /** Returns the name of the ClickHouse server that answers, and the ids of the database there, the newest first. */
  async #claimAt(client: ClickHouseClient): Promise<{ readonly server: string; readonly ids: readonly string[] }> {
    const { group, server, partitions } = this.#owner;
    if (await this.#isClaimed(client)) await refuseOtherGroups(client, group);
    else {
      await claimDatabase(client, group);
      await run(client, 'record-identity', { server, group, partitions });
    }
    const rows = await read(client);
    const [newest] = rows;
    if (!newest) throw new Error('ClickHouse has recorded no identity of the database');
    if (server !== '' && newest.server === '') await run(client, 'record-server-name', { server });
    requireEqual(this.#owner, newest);
    return { server: this.#isShared ? '' : newest.answering, ids: rows.map(({ id }) => id) };
  }

  /**
   * Makes sure that rows are not being copied into the database: what is stored now would be stored twice.
   *
   * @param answering the name of the ClickHouse server that has the database; empty where any may answer
   * @throws {DatabaseFilling}
   * @throws {Error} when another server answers
   * @throws ClickHouse's errors
   */
  async requireFilled(answering: string): Promise<void> {
    const [newest] = await read(this.#client);
    if (!newest || (answering !== '' && newest.answering !== answering)) throw new Error('another server answers');
    if (newest.state !== 'filling') return;
    throw new DatabaseFilling(
      `the database is being filled by "${fillingCommand(newest.detail)}": run that to its end; the writer waits for it`,
    );
  }

  /** The metadata of offsets that are committed. */
  get id(): string {
    const [id] = this.#ids;
    if (id === undefined) throw new Error('the database is not claimed yet');
    return id;
  }

  /** Whether an id is one of this database. */
  isOwn(id: string): boolean {
    return this.#ids.includes(id);
  }
}

async function read(client: ClickHouseClient): Promise<IdentityRow[]> {
  const result = await client.query({ query: STATEMENTS['read-identity'].sql, format: 'JSONEachRow' });
  return await result.json<IdentityRow>();
}

async function run(
  client: ClickHouseClient,
  name: 'record-identity' | 'record-server-name',
  parameters: Readonly<Record<string, string>>,
): Promise<void> {
  await client.command({ query: STATEMENTS[name].sql, query_params: { ...parameters } });
}

/** What was told one replica twice, another one would not know. @throws {DatabaseMismatch} when two addresses lead to one server */
function requireDistinct(names: readonly string[]): void {
  const same = names.find((name, place) => names.indexOf(name) < place);
  if (same === undefined) return;
  throw new DatabaseMismatch(
    `two addresses in CLICKHOUSE_SERVERS_FILE lead to the same server (${same}): give each replica its own, and name each once`,
  );
}

/** Without a file of servers, a writer does not know the name of its server. @throws {DatabaseMismatch} */
function requireEqual({ server, partitions }: DatabaseOwner, recorded: IdentityRow): void {
  if (server !== '' && recorded.server !== '' && recorded.server !== server) {
    throw new DatabaseMismatch(
      `the database is that of the server ${recorded.server}, and CLICKHOUSE_SERVER is ${server}: check the addresses in ` +
        'CLICKHOUSE_SERVERS_FILE',
    );
  }
  if (recorded.partitions !== partitions) {
    throw new DatabaseMismatch(
      `the database stores the partitions ${recorded.partitions}, and its writer is to store ${partitions}: the partitions of ` +
        'a server never change',
    );
  }
}
