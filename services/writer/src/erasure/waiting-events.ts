import { sendMessages } from '@sluice/shared/kafka/send-messages';
import { messageHeaders } from '@sluice/shared/rows';
import { requireNoRemovals } from '@sluice/storage/clickhouse/removals';
import type { TemporaryTables } from '@sluice/storage/clickhouse/temporary-tables';
import { COLD_VOLUME_AWAY } from '@sluice/storage/protocol/dead-letter';
import type { Kafka } from 'kafkajs';
import type { WriterConfig } from '../config.ts';
import { ERASURE_TIMEOUT_MS } from './erasure.ts';
import { Rounds, type RoundsDependencies } from './rounds.ts';
import { STATEMENTS } from './statements.ts';

/** So many bytes of rows are sent at once, or one row. */
const SENT_BYTES = 256 * 1_024;

export interface WaitingEventsDependencies extends RoundsDependencies {
  readonly kafka: Kafka;
}

/** A month of which late events wait, or were sent again so long ago that they are stored. */
interface WaitingMonth {
  readonly month: number;
  readonly is_sent: 0 | 1;
  /** When those were sent at the latest that are stored. */
  readonly sent_before: string;
}

interface WaitingRow {
  readonly topic: string;
  readonly partition: number;
  readonly row64: string;
}

/**
 * Sends late events to Kafka again that wait in `dead_letters` because the cold volume did not answer, once it does. The writers
 * store each unless it is stored already. So it does no harm if some are sent twice, as when this is ended before it marks them.
 *
 * A month whose events cannot be looked up yet waits for the next round. What was sent is removed from the dead letters after
 * RETENTION_INTERVAL_MS: until then they say where the event is.
 */
export class WaitingEvents extends Rounds {
  readonly #times: { readonly delayMs: number; readonly keptMs: number };
  readonly #deps: WaitingEventsDependencies;

  constructor(
    config: Pick<WriterConfig, 'ERASURE_INTERVAL_MS' | 'ERASURE_DELAY_MS' | 'RETENTION_INTERVAL_MS'>,
    deps: WaitingEventsDependencies,
  ) {
    super({ intervalMs: config.ERASURE_INTERVAL_MS, what: 'storing late events that wait for the cold volume' }, deps);
    // Longer than a statement takes that stores dead letters.
    this.#times = { delayMs: config.ERASURE_DELAY_MS, keptMs: config.RETENTION_INTERVAL_MS };
    this.#deps = deps;
  }

  /**
   * Sends what can be stored now, and removes what is stored.
   *
   * @throws {RemovalRunning}, ClickHouse's and kafkajs's errors: the next round goes on
   */
  async takeRound(): Promise<void> {
    const { client, writerId } = this.#deps;
    await this.useTables(client, `sluice-writer/${writerId}-waiting`, ERASURE_TIMEOUT_MS, async (session) => {
      const found = await session.read<WaitingMonth>(STATEMENTS['find-waiting-events'], {
        reason: COLD_VOLUME_AWAY,
        ...this.#times,
      });
      const failures: unknown[] = [];
      for (const { month } of found.filter(({ is_sent }) => !is_sent))
        await this.#sendAgain(session, month).catch((error) => failures.push(error));
      if (failures.length > 0) throw failures[0];
      const sent = found.find(({ is_sent }) => is_sent);
      if (sent) await this.#removeSent(session, sent.sent_before);
    });
  }

  async #sendAgain(session: TemporaryTables, month: number): Promise<void> {
    if (!this.mayGoOn) throw new Error('this writer no longer sends late events');
    const { delayMs } = this.#times;
    await session.run(STATEMENTS['stage-waiting-events'], { reason: COLD_VOLUME_AWAY, month, delayMs });
    await session.read(STATEMENTS['look-up-waiting-events']);
    const events = await this.#send(session);
    await session.run(STATEMENTS['mark-sent-events']);
    this.#deps.logger.info({ month, events }, 'the cold volume answers: late events that waited are sent again');
  }

  async #removeSent(session: TemporaryTables, sentBefore: string): Promise<void> {
    await requireNoRemovals(session);
    for (const name of ['remove-sent-states', 'remove-sent-events'] as const) {
      await session.run(STATEMENTS[name], { reason: COLD_VOLUME_AWAY, sentBefore });
    }
  }

  /** Returns how many rows are sent. */
  async #send(session: TemporaryTables): Promise<number> {
    let sent = 0;
    let open: WaitingRow[] = [];
    let bytes = 0;
    const flush = async () => {
      await this.#sendRows(open);
      sent += open.length;
      open = [];
      bytes = 0;
    };
    for await (const row of session.stream<WaitingRow>(STATEMENTS['read-waiting-events'])) {
      if (bytes + row.row64.length > SENT_BYTES) await flush();
      open.push(row);
      bytes += row.row64.length;
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
