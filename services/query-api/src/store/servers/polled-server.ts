import { atMost } from '@sluice/shared/base/retry';
import type { Server } from '@sluice/shared/servers/servers-file';
import type { ClickHouseReader } from '../clickhouse-reader.ts';
import { FreshPoll } from '../fresh-poll.ts';
import { ConnectionFailure } from '../read-failures.ts';
import type { ServerState } from './server-state.ts';

/** How old what is known of a server may be, in milliseconds: a deletion has to be in force within a second. */
const FRESH_MS = 500;

/** A server is given up when a poll has taken so long, in milliseconds, or so many have failed, and another one answers. */
const SILENT_MS_MAX = 3_000;
const FAILURES_MAX = 2;

export interface PolledServerOptions {
  readonly server: Server;
  readonly reader: ClickHouseReader;
  /** Polls the state of the server. @throws {Problem} */
  readonly poll: (server: PolledServer, signal: AbortSignal) => Promise<ServerState>;
  /** Called with what each poll brings. */
  readonly onState: (server: PolledServer, state: ServerState) => void;
}

interface Answer {
  readonly state: ServerState;
  /** When its poll began, on the clock of `performance`. */
  readonly at: number;
}

/** A ClickHouse server of several, with what polls have found out about it. It is polled while requests come. */
export class PolledServer {
  readonly server: Server;
  readonly reader: ClickHouseReader;
  readonly #options: PolledServerOptions;
  readonly #poll: FreshPoll<ServerState>;
  #last: Answer | undefined;
  /** When the poll that runs began. */
  #pollingSince: number | undefined;
  #failures = 0;
  /** When the first of the polls began that have failed since. */
  #failingSince = 0;
  /** Why the last poll failed; undefined after one that succeeded. */
  #failure: string | undefined;
  #isAway = false;
  /** Ends what is read when the server is given up. */
  #lifetime = new AbortController();

  constructor(options: PolledServerOptions) {
    this.server = options.server;
    this.reader = options.reader;
    this.#options = options;
    this.#poll = new FreshPoll((signal) => this.#ask(signal), { freshMs: FRESH_MS });
  }

  start(): void {
    this.#poll.start();
  }

  async stop(): Promise<void> {
    await this.#poll.stop();
    this.reader.close();
  }

  /** Aborts when the server is given up. */
  get givenUp(): AbortSignal {
    return this.#lifetime.signal;
  }

  /** Whether it is given up: it has not answered since. */
  get isAway(): boolean {
    return this.#isAway;
  }

  /** What the last poll that succeeded has brought. */
  get lastState(): ServerState | undefined {
    return this.#last?.state;
  }

  get failure(): string | undefined {
    return this.#failure;
  }

  /** How far behind Kafka it is now, in milliseconds. */
  get behindMs(): number {
    return this.#last ? this.#last.state.behindMs + performance.now() - this.#last.at : Number.POSITIVE_INFINITY;
  }

  /** Returns its state, half a second old at most. @throws {Problem} when it cannot be polled */
  async state(): Promise<ServerState> {
    return await this.#poll.value();
  }

  /**
   * Returns whether it responds in time; polling does not go on because of it. When it is given up it is not waited for: its
   * answer is noticed when it comes.
   */
  async respondsWithin(timeoutMs: number): Promise<boolean> {
    let responds = false;
    const look = this.#poll.look().then(
      () => {
        responds = true;
      },
      () => undefined,
    );
    if (!this.#isAway) await atMost(timeoutMs, look);
    return responds;
  }

  /** Keeps it polled in the background. */
  keepPolled(): void {
    this.#poll.value().catch(() => undefined);
  }

  /** Whether it has answered a poll that began after a moment, on the clock of `performance`. */
  hasAnsweredSince(moment: number): boolean {
    return this.#last !== undefined && this.#last.at >= moment;
  }

  /** Since when it does not respond, if that is long enough to give it up; on the clock of `performance`. */
  get silentSince(): number | undefined {
    const now = performance.now();
    if (this.#failures >= FAILURES_MAX) return this.#failingSince;
    const since = this.#pollingSince;
    return since !== undefined && now - since > SILENT_MS_MAX ? since : undefined;
  }

  /** Ends all that waits for it. It is read again once it answers a poll. */
  giveUp(): void {
    this.#isAway = true;
    this.#lifetime.abort(new ConnectionFailure(`the server ${this.server.name} does not respond`));
  }

  async #ask(signal: AbortSignal): Promise<ServerState> {
    const startedAt = performance.now();
    this.#pollingSince = startedAt;
    // Of a server that is given up, a poll is given up as well once it has taken as long.
    const end = this.#isAway
      ? AbortSignal.any([signal, AbortSignal.timeout(SILENT_MS_MAX)])
      : AbortSignal.any([signal, this.#lifetime.signal]);
    try {
      const state = await this.#options.poll(this, end);
      this.#last = { state, at: startedAt };
      this.#failures = 0;
      this.#failure = undefined;
      if (this.#isAway) this.#lifetime = new AbortController();
      this.#isAway = false;
      this.#options.onState(this, state);
      return state;
    } catch (error) {
      if (this.#failures === 0) this.#failingSince = startedAt;
      this.#failures += 1;
      this.#failure = (error as Error).message;
      throw error;
    } finally {
      this.#pollingSince = undefined;
    }
  }
}
