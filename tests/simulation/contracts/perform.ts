import { createLogger } from '@sluice/shared/base/log';
import { CarriedTables } from '@sluice/storage/clickhouse/carried-tables';
import { claimDatabase } from '@sluice/storage/clickhouse/claim-database';
import { ClickHouseSession } from '@sluice/storage/clickhouse/clickhouse-session';
import { Halts } from '@sluice/storage/clickhouse/halts';
import { readPartitions } from '@sluice/storage/clickhouse/known-partitions';
import { Ownership } from '@sluice/storage/clickhouse/ownership';
import { checkPartitionCount } from '@sluice/storage/clickhouse/partition-count';
import { Positions } from '@sluice/storage/clickhouse/positions';
import { STATEMENTS as STORAGE_STATEMENTS } from '@sluice/storage/clickhouse/statements';
import type { TemporaryTables, UseTemporaryTables } from '@sluice/storage/clickhouse/temporary-tables';
import type { OwnEpoch } from '@sluice/storage/protocol/epoch';
import type { StagedBatch } from '@sluice/writer/batch/staged-batch';
import { StagedStore } from '@sluice/writer/batch/staged-batch';
import { STATEMENTS as BATCH_STATEMENTS } from '@sluice/writer/batch/statements';
import { eraseRows, forgetUsersWithoutRows } from '@sluice/writer/erasure/deleted-rows';
import type { DueErasure } from '@sluice/writer/erasure/erasure-passes';
import { FastColumns } from '@sluice/writer/erasure/fast-columns';
import type { UserDeletion } from '@sluice/writer/erasure/linked-visitors';
import { STATEMENTS } from '@sluice/writer/erasure/statements';
import type { ClickHouseEngine } from './clickhouse-engines.ts';
import { flakyClient } from './flaky-client.ts';
import type { Operation } from './random-operations.ts';

const STATEMENT_TIMEOUT_MS = 20_000;

/** The writer's own code on one engine: does what it is told, and says how it ended. */
export class Performer {
  readonly #engine: ClickHouseEngine;
  readonly #groupId;
  readonly #flaky;
  readonly #epochs: OwnEpoch[] = [];
  readonly #batches: StagedBatch[] = [];
  readonly #store;
  #isMember = false;
  #declared = 0;
  readonly #ownership;
  readonly #positions;
  readonly #halts;

  readonly #useTables: UseTemporaryTables;

  /**
   * @param groupId no other writer's on the server: it ends their statements
   * @param areCarried whether the rows of a batch travel with each statement. Default: they are in a session
   */
  constructor(engine: ClickHouseEngine, groupId: string, areCarried = false) {
    this.#engine = engine;
    this.#groupId = groupId;
    this.#flaky = flakyClient(engine.client);
    const { client } = this.#flaky;
    const isMember = async () => this.#isMember;
    const ownership = new Ownership({ client, groupId, writerId: 'writer', isMember });
    const common = { client, ownership, groupId, statementTimeoutMs: STATEMENT_TIMEOUT_MS };
    this.#ownership = ownership;
    const { sql: query } = BATCH_STATEMENTS['end-own-statements'];
    const endStatements = async (prefix: string) => void (await client.command({ query, query_params: { prefix } }));
    this.#store = new StagedStore({ ...common, ...(areCarried && { carried: { endStatements } }) });
    this.#useTables = areCarried ? CarriedTables.use : ClickHouseSession.use;
    this.#positions = new Positions(common);
    this.#halts = new Halts(client, groupId);
  }

  /** How many epochs were begun, and batches opened. */
  get opened(): { readonly batches: number; readonly epochs: number } {
    return { batches: this.#batches.length, epochs: this.#epochs.length };
  }

  /** Returns what every statement was answered, and how the operation ended. */
  async perform(operation: Operation): Promise<readonly string[]> {
    const { answers } = this.#flaky;
    answers.length = 0;
    const ended = await this.#engine.run(async () => {
      try {
        return `ended: ${JSON.stringify(await this.#perform(operation)) ?? ''}`;
      } catch (error) {
        return `failed: ${(error as Error).name}`;
      }
    });
    this.#flaky.loseResponseAfter(Number.MAX_SAFE_INTEGER);
    return [...answers, ended];
  }

  async #perform(operation: Operation): Promise<unknown> {
    const { client, loseResponseAfter } = this.#flaky;
    switch (operation.kind) {
      case 'claim': {
        this.#isMember = operation.isMember;
        const memberId = 'member';
        const epoch = await this.#ownership.begin({ ...operation, memberId }, '');
        this.#epochs.push(epoch);
        return epoch;
      }
      case 'store': {
        const batch = this.#store.open(operation.batch, this.#epoch(operation.epoch), () => undefined);
        this.#batches.push(batch);
        loseResponseAfter(operation.loseResponseAfter);
        return await batch.store();
      }
      case 'store again':
        loseResponseAfter(operation.loseResponseAfter);
        return await this.#batch(operation.batch).store();
      case 'end':
        return await this.#batch(operation.batch).end();
      case 'store positions': {
        const positions = operation.positions.map((position) => ({
          ...position,
          last: { fingerprint: `of ${position.nextOffset}`, leaderEpoch: 3 },
        }));
        return await this.#positions.store(positions, this.#epoch(operation.epoch));
      }
      case 'halt': {
        const { partition, epoch } = operation;
        const why = { detail: 'why', firstOffset: null, lastOffset: 4n };
        const halt = { topic: 't.events', partition, ...why };
        if (epoch === undefined) return await this.#halts.record({ ...halt, reason: 'by hand' });
        return await this.#halts.record({ ...halt, reason: 'the log was cut off' }, this.#epoch(epoch));
      }
      case 'resume':
        await this.#halts.resume('t.events', operation.partition, operation.offset);
        await readPartitions(client, this.#groupId);
        return;
      case 'claim database':
        return await claimDatabase(client, operation.group);
      case 'check partitions': {
        const config = { KAFKA_TOPIC_PREFIX: 't.', KAFKA_PARTITIONS: operation.partitions };
        return await checkPartitionCount(client, config as Parameters<typeof checkPartitionCount>[1]);
      }
      case 'declare':
        this.#declared += 1;
        return await this.#engine.declareFast({ ...operation, declared: this.#declared });
      case 'fill columns':
        return await this.#fillColumns();
      case 'forget users without rows':
        return await this.#withDue(forgetUsersWithoutRows);
      case 'erase':
        return await this.#withDue((session, due) => eraseRows(session, due, () => undefined));
    }
  }

  async #fillColumns(): Promise<void> {
    const filler = new FastColumns(
      { ERASURE_INTERVAL_MS: 0, RETENTION_INTERVAL_MS: 0 },
      {
        ...{ client: this.#flaky.client, writerId: 'writer', logger: createLogger('test', 'silent') },
        useTables: this.#useTables,
        failures: { inc: () => undefined },
      },
    );
    filler.setOwner(true);
    await filler.takeRound();
  }

  #epoch(index: number): OwnEpoch {
    const epoch = this.#epochs[index];
    if (!epoch) throw new RangeError(`there is no epoch ${index}`);
    return epoch;
  }

  #batch(index: number): StagedBatch {
    const batch = this.#batches[index];
    if (!batch) throw new RangeError(`there is no batch ${index}`);
    return batch;
  }

  /** What deletes the visitors of deleted users finds them, and takes them for deleted. */
  async #settle(session: TemporaryTables): Promise<void> {
    // Later than anything was accepted.
    const query_params = { throughMs: Date.UTC(2040), newestBlock: 0 };
    await this.#flaky.client.command({ query: STORAGE_STATEMENTS['record-progress'].sql, query_params });
    const found = await session.read<UserDeletion>(STATEMENTS['find-unsettled-deletions'], {
      ...{ delayMs: 0, deletionsMax: 100, afterVersion: 0, afterWorkspace: '', afterUser: '' },
    });
    if (found.length === 0) return;
    const parameters = {
      workspaces: found.map(({ workspace_id }) => workspace_id),
      users: found.map(({ user_id }) => user_id),
      versions: found.map(({ version }) => version),
    };
    await session.read(STATEMENTS['find-deleted-visitors'], parameters);
    await session.run(STATEMENTS['settle-deletions'], parameters);
  }

  async #withDue<Result>(work: (session: TemporaryTables, due: DueErasure[]) => Promise<Result>): Promise<Result> {
    // What is found of a user who came back depends on what ClickHouse has merged by now.
    await this.#engine.merge();
    return await this.#useTables(this.#flaky.client, 'erasure', STATEMENT_TIMEOUT_MS, async (session) => {
      await this.#settle(session);
      const from = { afterMs: 0, afterWorkspace: '', afterUser: '' };
      const parameters = { delayMs: 0, usersMax: 100, ...from };
      const due = await session.read<DueErasure>(STATEMENTS['find-due-erasures'], parameters);
      return await work(session, due);
    });
  }
}
