import type { Request } from './network.ts';

/** How far a request has come: it leaves its client, it arrives at the server, the server has done what it asks for. */
export type Moment = 'sent' | 'arrived' | 'served';

/** A moment of the next request that asks for something. */
export interface Trigger {
  readonly what: string;
  readonly moment: Moment;
}

/** Has something happen at moments of requests. */
export class Watches {
  readonly #waiting = new Map<string, Set<(request: Request) => void>>();

  /** Runs something at the next such moment, once. Returns a function that calls it off. */
  next({ what, moment }: Trigger, run: (request: Request) => void): () => void {
    const key = `${what} ${moment}`;
    const waiting = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, waiting);
    waiting.add(run);
    return () => waiting.delete(run);
  }

  notice(request: Request, moment: Moment): void {
    const waiting = this.#waiting.get(`${request.what} ${moment}`);
    if (!waiting || waiting.size === 0) return;
    const due = [...waiting];
    waiting.clear();
    for (const run of due) run(request);
  }

  clear(): void {
    this.#waiting.clear();
  }
}
