import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { claimDatabase } from './claim-database.ts';
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
  #ids: readonly string[] = [];

  constructor(client: ClickHouseClient, owner: DatabaseOwner) {
    this.#client = client;
    this.#owner = owner;
  }

  /**
   * Makes sure that the database is that of the owner, and records so in a new one.
   *
   * @returns the name of the ClickHouse server that has the database
   * @throws {GroupMismatch}
   * @throws {DatabaseMismatch} when it is that of another server, or has other partitions
   * @throws ClickHouse's errors
   */
  async claim(): Promise<string> {
    const { group, server, partitions } = this.#owner;
    await claimDatabase(this.#client, group);
    await this.#run('record-identity', { server, group, partitions });
    const [newest, ...older] = await this.#read();
    if (!newest) throw new Error('ClickHouse has recorded no identity of the database');
    if (server !== '' && newest.server === '') await this.#run('record-server-name', { server });
    requireEqual(this.#owner, newest);
    this.#ids = [...new Set([newest, ...older].map(({ id }) => id))];
    return newest.answering;
  }

  /**
   * Makes sure that rows are not being copied into the database: what is stored now would be stored twice.
   *
   * @param answering the name of the ClickHouse server that has the database
   * @throws {DatabaseFilling}
   * @throws {Error} when another server answers
   * @throws ClickHouse's errors
   */
  async requireFilled(answering: string): Promise<void> {
    const [newest] = await this.#read();
    if (newest?.answering !== answering) throw new Error('another server answers');
    if (newest.state !== 'filling') return;
    throw new DatabaseFilling(
      'the database is being filled by "sluice servers copy": run that to its end; the writer waits for it',
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

  async #read(): Promise<IdentityRow[]> {
    const result = await this.#client.query({ query: STATEMENTS['read-identity'].sql, format: 'JSONEachRow' });
    return await result.json<IdentityRow>();
  }

  async #run(name: 'record-identity' | 'record-server-name', parameters: Readonly<Record<string, string>>) {
    await this.#client.command({ query: STATEMENTS[name].sql, query_params: { ...parameters } });
  }
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
