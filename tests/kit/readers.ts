import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@sluice/shared/testing/eventually';
import type { Load } from './load.ts';
import type { Pipeline } from './pipeline.ts';

export interface ReadersOptions {
  readonly pipeline: Pick<Pipeline, 'key'>;
  /** Where to read; requests go to each in turn. */
  readonly urls: () => readonly string[];
  /** Each is read by a client of its own, all the time. */
  readonly paths: readonly string[];
  /**
   * How long each client waits between two requests, in milliseconds. Default 800: without pauses, they would take all processors. It
   * waits at least twice as long as its last request took, so that a busy machine has less to do.
   */
  readonly pauseMs?: number;
}

/** A request whose response was not 200. */
export interface FailedRead {
  readonly path: string;
  /** When it ended, as ISO 8601. */
  readonly at: string;
  /** `undefined` where the response did not come, or was cut off. */
  readonly status: number | undefined;
  /** The body, or the error. */
  readonly text: string;
}

/** Clients that read until they are stopped, or disposed of when a test fails. */
export interface Readers extends AsyncDisposable {
  /** How many requests got 200. */
  answeredSoFar(): number;
  /** How many requests did not. */
  failedSoFar(): number;
  /** How long the slowest request took, in milliseconds. */
  slowestMs(): number;
  /** Returns all that did not. */
  stop(): Promise<readonly FailedRead[]>;
}

export function startReaders({ pipeline, urls, paths, pauseMs = 800 }: ReadersOptions): Readers {
  const headers = { authorization: `Bearer ${pipeline.key}` };
  const failed: FailedRead[] = [];
  let reading = true;
  let answered = 0;
  let slowestMs = 0;

  async function read(path: string): Promise<void> {
    for (let turn = 0; reading; turn += 1) {
      const targets = urls();
      const beganAt = performance.now();
      const fail = (status: number | undefined, text: string) =>
        failed.push({ path, at: new Date().toISOString(), status, text });
      try {
        const response = await fetch(`${targets[turn % targets.length]}${path}`, { headers });
        const text = await response.text();
        if (response.status === 200) answered += 1;
        else fail(response.status, text);
      } catch (error) {
        fail(undefined, String(error));
      }
      const tookMs = performance.now() - beganAt;
      slowestMs = Math.max(slowestMs, tookMs);
      await delay(Math.max(pauseMs, 2 * tookMs));
    }
  }

  const ended = Promise.all(paths.map(read));

  async function stop(): Promise<readonly FailedRead[]> {
    reading = false;
    await ended;
    return failed;
  }

  return {
    answeredSoFar: () => answered,
    failedSoFar: () => failed.length,
    slowestMs: () => slowestMs,
    stop,
    async [Symbol.asyncDispose]() {
      await stop();
    },
  };
}

/** Waits until a load has had so many more submissions accepted, and readers so many more requests answered. */
export async function untilBothGoOn(
  load: Pick<Load, 'acceptedSoFar'>,
  readers: Pick<Readers, 'answeredSoFar'>,
  more: { readonly accepted: number; readonly answered: number },
): Promise<void> {
  const [accepted, answered] = [load.acceptedSoFar(), readers.answeredSoFar()];
  await eventually(load.acceptedSoFar).toBeGreaterThan(accepted + more.accepted);
  await eventually(readers.answeredSoFar).toBeGreaterThan(answered + more.answered);
}
