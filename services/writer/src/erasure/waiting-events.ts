import type { Logger } from '@sluice/shared/base/log';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { sendMessages } from '@sluice/shared/kafka/send-messages';
import { messageHeaders } from '@sluice/shared/rows';
import { ClickHouseSession } from '@sluice/storage/clickhouse/clickhouse-session';
import { requireNoRemovals } from '@sluice/storage/clickhouse/removals';
import { COLD_VOLUME_AWAY } from '@sluice/storage/protocol/dead-letter';
import type { Kafka } from 'kafkajs';
import type { WriterConfig } from '../config.ts';
import { ERASURE_TIMEOUT_MS } from './erasure.ts';
import { Rounds } from './rounds.ts';
import { STATEMENTS } from './statements.ts';

/** So many bytes of rows are sent at once, or one row. */
const SENT_BYTES = 256 * 1_024;

export interface WaitingEventsDependencies {
  readonly client: ClickHouseClient;
  readonly kafka: Kafka;
  readonly writerId: string;
  readonly logger: Logger;
  /** Counts rounds that failed. */
  readonly failures: { inc(): void };
}

/** Late events of a month that wait. */
interface WaitingMonth {
  readonly month: number;
  /** Those whose state is from before this time. */
  readonly before: string;
}

interface WaitingRow {
  readonly topic: string;
  readonly partition: number;
  readonly row64: string;
}

/**
 * Sends late events to Kafka again that wait in `dead_letters` because the cold volume did not answer, once it does, and removes
 * them there. The writers store each unless it is stored already. So it does no harm if some are sent twice, as when this is ended
 * between the two.
 *
 * A month whose events cannot be looked up yet waits for the next round.
 */
export class WaitingEvents {
  readonly #delayMs: number;
  readonly #deps: WaitingEventsDependencies;
  readonly #rounds: Rounds;

  constructor(config: Pick<WriterConfig, 'ERASURE_INTERVAL_MS' | 'ERASURE_DELAY_MS'>, deps: WaitingEventsDependencies) {
    const { logger, failures } = deps;
    // Longer than a statement takes that stores dead letters.
    this.#delayMs = config.ERASURE_DELAY_MS;
    this.#deps = deps;
    this.#rounds = new Rounds({
      intervalMs: config.ERASURE_INTERVAL_MS,
      ...{ what: 'storing late events that wait for the cold volume', logger, failures },
    });
  }

  start(): void {
    this.#rounds.start(() => this.takeRound());
  }

  /** Only one writer of the group sends them: the one that owns the first partition of the events. */
  setOwner(owner: boolean): void {
    this.#rounds.setOwner(owner);
  }

  async stop(): Promise<void> {
    await this.#rounds.stop();
  }

  /**
   * Sends what can be stored now.
   *
   * @throws {RemovalRunning}, ClickHouse's and kafkajs's errors: the next round goes on
   */
  async takeRound(): Promise<void> {
    const { client, writerId } = this.#deps;
    await ClickHouseSession.use(client, `sluice-writer/${writerId}-waiting`, ERASURE_TIMEOUT_MS, async (session) => {
      const found = STATEMENTS['find-waiting-months'];
      const months = await session.read<WaitingMonth>(found, { reason: COLD_VOLUME_AWAY, delayMs: this.#delayMs });
      const failures: unknown[] = [];
      for (const month of months) await this.#sendAgain(session, month).catch((error) => failures.push(error));
      if (failures.length > 0) throw failures[0];
    });
  }

  async #sendAgain(session: ClickHouseSession, { month, before }: WaitingMonth): Promise<void> {
    if (!this.#rounds.mayGoOn) throw new Error('this writer no longer sends late events');
    // Before they are sent, or they would be sent in each round until the removal may begin.
    await requireNoRemovals(session);
    const parameters = { reason: COLD_VOLUME_AWAY, month, before };
    await session.read(STATEMENTS['look-up-waiting-events'], parameters);
    const events = await this.#send(parameters);
    await session.run(STATEMENTS['remove-sent-events'], parameters);
    this.#deps.logger.info({ month, events }, 'the cold volume answers: late events that waited are stored');
  }

  /** Returns how many rows are sent. */
  async #send(query_params: Record<string, unknown>): Promise<number> {
    const { sql: query } = STATEMENTS['read-waiting-events'];
    // ClickHouse says that it failed before the first row, and not after some: those that are not sent would be removed.
    const clickhouse_settings = { wait_end_of_query: 1 } as const;
    const request = { query, query_params, clickhouse_settings, format: 'JSONEachRow' } as const;
    const result = await this.#deps.client.query(request);
    let sent = 0;
    let open: WaitingRow[] = [];
    let bytes = 0;
    const flush = async () => {
      await this.#sendRows(open);
      sent += open.length;
      open = [];
      bytes = 0;
    };
    for await (const rows of result.stream<WaitingRow>()) {
      for (const row of rows.map((one) => one.json())) {
        if (bytes + row.row64.length > SENT_BYTES) await flush();
        open.push(row);
        bytes += row.row64.length;
      }
    }
    await flush();
    return sent;
  }

  async #sendRows(rows: readonly WaitingRow[]): Promise<void> {
    if (rows.length === 0) return;
    const topicMessages = [...Map.groupBy(rows, ({ topic }) => topic)].map(([topic, some]) => ({
      topic,
      messages: some.map(({ partition, row64 }) => ({
        partition,
        headers: { ...messageHeaders('events') },
        value: Buffer.concat([Buffer.from(row64, 'base64'), Buffer.from('\n')]),
      })),
    }));
    await sendMessages(this.#deps.kafka, topicMessages, `${rows.length} late events`);
  }
}
