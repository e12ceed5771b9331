import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { OwnEpoch } from '../protocol/epoch.ts';
import type { Halt } from '../protocol/log-gap.ts';
import { asFenced } from './ownership.ts';
import { STATEMENTS } from './statements.ts';

/** Older than every epoch of a writer. */
const NO_EPOCH: OwnEpoch = { incarnation: 0, generation: 0, server: '' };

/**
 * The halts of a group of writers. They are kept in ClickHouse, so a restart of a writer ends none. Of each partition the newest
 * is kept, and of all of them the gaps between log and database.
 */
export class Halts {
  readonly #client: ClickHouseClient;
  readonly #groupId: string;

  constructor(client: ClickHouseClient, groupId: string) {
    this.#client = client;
    this.#groupId = groupId;
  }

  /**
   * @param epoch in which a writer has decided on the halt; without one, an operator has
   * @throws {Fenced} when a newer epoch is recorded, whose owners have inspected the partition since then, or another server answers
   * @throws ClickHouse's errors
   */
  async record(halt: Halt, epoch: OwnEpoch = NO_EPOCH): Promise<void> {
    if (halt.reason === 'by hand') await this.#run('keep-gap', { topic: halt.topic, partition: halt.partition });
    await this.#run('record-halt', { ...halt, ...epoch }).catch((error) => {
      throw asFenced(error);
    });
  }

  /** Records which messages of the log an operator gives up: the offsets from `first` to `last`. @throws ClickHouse's errors */
  async giveUp(topic: string, partition: number, first: bigint, last: bigint): Promise<void> {
    await this.#run('give-up-messages', { topic, partition, first, last });
  }

  /**
   * Resumes a partition at the offset that the operator chose, or without one where it was.
   *
   * @throws ClickHouse's errors
   */
  async resume(topic: string, partition: number, offset?: bigint): Promise<void> {
    await this.#run('keep-gap', { topic, partition });
    if (offset !== undefined) await this.#run('choose-position', { topic, partition, offset });
    await this.#run('resume-partition', { topic, partition, offset: offset ?? null });
  }

  async #run(name: keyof typeof STATEMENTS, parameters: Readonly<Record<string, unknown>>): Promise<void> {
    await this.#client.command({ query: STATEMENTS[name].sql, query_params: { group: this.#groupId, ...parameters } });
  }
}
