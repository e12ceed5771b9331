import { sendMessages } from '@sluice/shared/kafka/send-messages';
import { topicNames } from '@sluice/shared/kafka/topics';
import { isVisitor } from '@sluice/shared/rows/deleted-person';
import type { TemporaryTables } from '@sluice/storage/clickhouse/temporary-tables';
import { deletionRow } from '@sluice/submissions/rows/deletion-row';
import { packMessages } from '@sluice/submissions/rows/message-packing';
import { RowCollector } from '@sluice/submissions/rows/partition-rows';
import type { Kafka } from 'kafkajs';
import type { WriterConfig } from '../config.ts';
import { ERASURE_TIMEOUT_MS } from './erasure.ts';
import { passesOf } from './erasure-passes.ts';
import { Rounds, type RoundsDependencies } from './rounds.ts';
import { STATEMENTS } from './statements.ts';

/** How many deletions one query returns. */
const DELETIONS_MAX = 1_000;

/** How many deletions of visitors are sent at once. */
const SENT_AT_ONCE = 100;

/** After what time a deletion that was sent and is not stored is sent again, in milliseconds. */
const SENT_AGAIN_MS = 60_000;

type LinkedVisitorsConfig = Pick<
  WriterConfig,
  'ERASURE_INTERVAL_MS' | 'ERASURE_DELAY_MS' | 'KAFKA_PARTITIONS' | 'KAFKA_TOPIC_PREFIX'
>;

export interface LinkedVisitorsDependencies extends RoundsDependencies {
  readonly kafka: Kafka;
}

/** A deletion of a user. */
export interface UserDeletion {
  readonly workspace_id: string;
  readonly user_id: string;
  readonly version: number;
}

interface VisitorDeletion extends UserDeletion {
  /** As a deletion names it. */
  readonly visitor: string;
  /** 1: it is the deletion of a merged user, and is stored. */
  readonly isKnown: 0 | 1;
}

/** What was looked at in a round. */
interface Round {
  /** The deletions, by {@link keyOf}. */
  readonly looked: Set<string>;
  /** The version of the deletion for which later ones of a workspace wait. */
  readonly waiting: Map<string, number>;
}

/**
 * Deletes the anonymous visitors of users who are deleted: those that were theirs at the time of the deletion; and who was merged into them
 * then. Each becomes a deletion like any other, with the version of the user's, which is sent to Kafka for all servers. Sending it twice changes nothing.
 *
 * Whose a visitor was depends on all that was accepted up to the deletion. So a deletion is looked at once all of that is stored. It is
 * settled when the deletions of all its visitors have come back and are stored; until then, queries hide what the links say.
 */
export class LinkedVisitors extends Rounds {
  readonly #config: LinkedVisitorsConfig;
  readonly #deps: LinkedVisitorsDependencies;
  /** When each deletion of a visitor was sent, on the clock of `performance`. */
  #sentAt = new Map<string, number>();

  constructor(config: LinkedVisitorsConfig, deps: LinkedVisitorsDependencies) {
    super({ intervalMs: config.ERASURE_INTERVAL_MS, what: 'deleting the visitors of deleted users' }, deps);
    this.#config = config;
    this.#deps = deps;
  }

  /** @throws ClickHouse's and kafkajs's errors: the next round goes on */
  async takeRound(): Promise<void> {
    const { client, writerId } = this.#deps;
    await this.useTables(client, `sluice-writer/${writerId}-visitors`, ERASURE_TIMEOUT_MS, async (session) => {
      let after: UserDeletion | undefined;
      const round: Round = { looked: new Set(), waiting: new Map() };
      while (this.mayGoOn) {
        const deletions = await this.#readWhole(session, after);
        for (const deletion of deletions) round.looked.add(keyOf(deletion));
        for (const pass of passesOf(deletions)) await this.#settle(session, pass, round);
        after = deletions.at(-1);
        if (!after) return;
      }
    });
  }

  /**
   * Returns the oldest unsettled deletions after a cursor. What was accepted up to them is stored, maybe at another replica: first the own one is
   * brought level, and then they are read again, as an earlier deletion may have come, which decides whom these find.
   */
  async #readWhole(session: TemporaryTables, after: UserDeletion | undefined): Promise<UserDeletion[]> {
    const { replicas } = this.#deps;
    const deletions = await this.#readUnsettled(session, after);
    const last = deletions.at(-1);
    if (!replicas?.readLinks || !last) return deletions;
    await replicas.readLinks();
    // Of later ones, some of what was accepted up to them may have been stored since.
    return (await this.#readUnsettled(session, after)).filter(({ version }) => version <= last.version);
  }

  async #readUnsettled(session: TemporaryTables, after: UserDeletion | undefined): Promise<UserDeletion[]> {
    return await session.read<UserDeletion>(STATEMENTS['find-unsettled-deletions'], {
      ...{ delayMs: this.#config.ERASURE_DELAY_MS, deletionsMax: DELETIONS_MAX },
      afterVersion: after?.version ?? 0,
      afterWorkspace: after?.workspace_id ?? '',
      afterUser: after?.user_id ?? '',
    });
  }

  async #settle(
    session: TemporaryTables,
    deletions: readonly UserDeletion[],
    { looked, waiting }: Round,
  ): Promise<void> {
    const found = Map.groupBy(
      await session.read<VisitorDeletion>(STATEMENTS['find-deleted-visitors'], parametersOf(deletions)),
      keyOf,
    );
    const visitorsOf = (deletion: UserDeletion) => found.get(keyOf(deletion)) ?? [];
    // A replica may know a deletion in part, which is looked at in another round then.
    const isOpen = (one: VisitorDeletion) => !one.isKnown || !looked.has(keyOf({ ...one, user_id: one.visitor }));
    const inTurn = deletions.filter((deletion) => {
      const { workspace_id, version } = deletion;
      if (version > (waiting.get(workspace_id) ?? version)) return false;
      // The deletion of a merged user ends links, which decides whom later deletions find.
      const hasMerged = visitorsOf(deletion).some((one) => !isVisitor(one.visitor) && isOpen(one));
      if (hasMerged) waiting.set(workspace_id, version);
      return true;
    });
    const settled = inTurn.filter((deletion) => !visitorsOf(deletion).some(isOpen));
    if (settled.length > 0) await session.run(STATEMENTS['settle-deletions'], parametersOf(settled));
    await this.#send(inTurn.flatMap(visitorsOf).filter(({ isKnown }) => !isKnown));
  }

  /** Sends those that were not sent lately. */
  async #send(visitors: readonly VisitorDeletion[]): Promise<void> {
    const now = performance.now();
    this.#sentAt = new Map([...this.#sentAt].filter(([, sentAt]) => now - sentAt < SENT_AGAIN_MS));
    const left = visitors.filter((one) => !this.#sentAt.has(nameOf(one)));
    for (let start = 0; start < left.length; start += SENT_AT_ONCE) {
      if (!this.mayGoOn) throw new Error('this writer no longer deletes visitors');
      const some = left.slice(start, start + SENT_AT_ONCE);
      await this.#sendRows(some);
      for (const one of some) this.#sentAt.set(nameOf(one), now);
    }
    if (left.length > 0)
      this.#deps.logger.info({ visitors: left.length }, 'visitors of deleted users are deleted, too');
  }

  /** Each in messages of its own, however many there are: writers with little memory store a message alone. */
  async #sendRows(visitors: readonly VisitorDeletion[]): Promise<void> {
    const { KAFKA_PARTITIONS: partitions } = this.#config;
    const messages = visitors.flatMap(({ workspace_id, visitor, version }) => {
      const collector = new RowCollector(partitions, () => undefined);
      collector.add(deletionRow(visitor, workspace_id, version));
      return collector.finish().flatMap((rows) => packMessages(rows.partition, [rows], partitions));
    });
    const topic = topicNames(this.#config).events;
    await sendMessages(this.#deps.kafka, [{ topic, messages }], `${visitors.length} deletions of visitors`);
  }
}

function parametersOf(deletions: readonly UserDeletion[]) {
  return {
    workspaces: deletions.map(({ workspace_id }) => workspace_id),
    users: deletions.map(({ user_id }) => user_id),
    versions: deletions.map(({ version }) => version),
  };
}

function nameOf(deletion: VisitorDeletion): string {
  return `${keyOf(deletion)}\0${deletion.visitor}`;
}

function keyOf({ workspace_id, user_id, version }: UserDeletion): string {
  return `${workspace_id}\0${user_id}\0${version}`;
}
