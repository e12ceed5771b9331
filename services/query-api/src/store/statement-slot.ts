import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '@sluice/shared/base/log';

/** How soon a server is asked for the first time, in milliseconds: a statement that was just sent has begun by then. */
const FIRST_MS = 50;

/** The longest pause between two questions, in milliseconds. */
const PAUSE_MS_MAX = 500;

/** How long after it was given up a statement may run before it counts as outliving its answer, in milliseconds. */
const OUTLIVES_MS = 2_000;

/** A statement that a server was sent. */
export interface SentStatement {
  readonly id: string;
  /** Tells the server to end the statement, and returns whether it runs still. @throws when the server cannot be asked */
  isRunning(): Promise<boolean>;
}

/** Is told what becomes of statements. */
export interface StatementWatch {
  onSent(statement: SentStatement): void;
  /** The server has responded to the end, or with an error. */
  onEnd(id: string): void;
  /** The connection broke: the server may have ended as well. */
  onLost(id: string): void;
}

/** Statements that were given up, for their time or because their client left, and that ClickHouse still runs. */
export class GivenUpStatements {
  readonly #logger: Logger | undefined;
  readonly #outliving = new Map<string, Set<string>>();
  readonly #closing = new AbortController();

  /** @param logger is told of statements that outlive their answer; default: nobody is */
  constructor(logger?: Logger) {
    this.#logger = logger;
  }

  /** How many outlive their answer. */
  get outlivingCount(): number {
    return [...this.#outliving.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** Whether a statement of a workspace has gone on for two seconds after it was given up. */
  isOutliving(workspace: string): boolean {
    return this.#outliving.has(workspace);
  }

  /**
   * Resolves when the server runs the statement no more. While it cannot be asked, the statement counts as running, unless its
   * connection was lost: then the server may be away.
   *
   * @param abandoned aborts when the server is given up for another one
   */
  async untilGone(
    statement: SentStatement,
    of: { readonly workspace: string; readonly isLost: boolean; readonly abandoned?: AbortSignal | undefined },
  ): Promise<void> {
    const { workspace, isLost, abandoned } = of;
    const startedAt = performance.now();
    try {
      for (let pauseMs = FIRST_MS; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
        await sleep(pauseMs, undefined, { signal: this.#closing.signal, ref: false });
        if (abandoned?.aborted || !(await statement.isRunning().catch(() => !isLost))) return;
        if (performance.now() - startedAt >= OUTLIVES_MS) this.#note(statement.id, workspace);
      }
    } catch {
      // The service stops: nobody waits for the slot any more.
    } finally {
      this.#forget(statement.id, workspace, performance.now() - startedAt);
    }
  }

  /** Asks no more. */
  close(): void {
    this.#closing.abort();
  }

  #note(queryId: string, workspace: string): void {
    const noted = this.#outliving.get(workspace) ?? new Set();
    if (noted.has(queryId)) return;
    this.#outliving.set(workspace, noted.add(queryId));
    this.#logger?.warn(
      { workspace, queryId },
      'ClickHouse still runs a statement that was given up; its slot stays taken',
    );
  }

  #forget(queryId: string, workspace: string, afterMs: number): void {
    const noted = this.#outliving.get(workspace);
    if (!noted?.delete(queryId)) return;
    if (noted.size === 0) this.#outliving.delete(workspace);
    this.#logger?.info({ workspace, queryId, afterMs: Math.round(afterMs) }, 'a statement that was given up has ended');
  }
}

/** A slot of queries that stays taken until ClickHouse runs none of the statements that were sent in it. */
export class StatementSlot {
  readonly #free: () => void;
  readonly #workspace: string;
  readonly #givenUp: GivenUpStatements;
  readonly #sent = new Map<
    string,
    { readonly statement: SentStatement; readonly abandoned: AbortSignal | undefined }
  >();
  readonly #lost = new Set<string>();
  #isReleased = false;

  /** @param free frees the slot itself; it is called once */
  constructor(free: () => void, workspace: string, givenUp: GivenUpStatements) {
    this.#free = free;
    this.#workspace = workspace;
    this.#givenUp = givenUp;
  }

  /** Returns what a reader tells of the statements of this slot. @param abandoned aborts when the server is given up */
  watch(abandoned?: AbortSignal): StatementWatch {
    return {
      onSent: (statement) => this.#sent.set(statement.id, { statement, abandoned }),
      onEnd: (id) => this.#sent.delete(id),
      onLost: (id) => this.#lost.add(id),
    };
  }

  /** Gives the slot back: at once when all its statements have ended, else when they have. A second call does nothing. */
  readonly release = (): void => {
    if (this.#isReleased) return;
    this.#isReleased = true;
    if (this.#sent.size === 0) this.#free();
    else void this.#freeWhenGone();
  };

  async #freeWhenGone(): Promise<void> {
    // What is sent from now on is not given up, and must not be told to end.
    for (const [id, { statement, abandoned }] of [...this.#sent]) {
      const isLost = this.#lost.has(id);
      await this.#givenUp.untilGone(statement, { workspace: this.#workspace, isLost, abandoned });
    }
    this.#free();
  }
}
