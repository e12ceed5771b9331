import type { WriteStream } from 'node:tty';
import { Presets, SingleBar } from 'cli-progress';

export interface ProgressState {
  /** From 0 to 1; `undefined` while the end is not known. */
  readonly done: number | undefined;
  readonly text: string;
}

/** Shows the progress of a command until it is stopped. */
export interface Progress {
  stop(): void;
}

const BAR_INTERVAL_MS = 200;
const LINE_INTERVAL_MS = 5_000;

/** A bar on a terminal; elsewhere a line every few seconds. */
export function showProgress(output: NodeJS.WriteStream & Partial<WriteStream>, state: () => ProgressState): Progress {
  return output.isTTY ? showBar(output, state) : showLines(output, state);
}

/** A number with separators between thousands. */
export function count(value: number): string {
  return value.toLocaleString('en');
}

/** Events per second, as a whole number. */
export function rate(events: number, seconds: number): number {
  return Math.round(events / Math.max(seconds, 0.001));
}

/** The percentage, as a list to be spread. */
export function percentage(done: number | undefined): string[] {
  return done === undefined ? [] : [`${Math.floor(100 * done)} %`];
}

/** How long it will take, as a list to be spread. */
export function timeLeft(done: number | undefined, seconds: number): string[] {
  if (!done || seconds < 1) return [];
  const left = Math.ceil((seconds * (1 - done)) / done);
  const minutes = Math.floor(left / 60);
  return [minutes > 0 ? `about ${minutes} min ${left % 60} s left` : `about ${left} s left`];
}

function showBar(output: NodeJS.WriteStream, state: () => ProgressState): Progress {
  const bar = new SingleBar({
    ...Presets.shades_classic,
    stream: output,
    hideCursor: true,
    clearOnComplete: true,
    format: (_options, { progress }, { text }: { text: string }) => {
      const filled = Math.round(20 * Math.min(progress, 1));
      const shown = `${'█'.repeat(filled)}${'░'.repeat(20 - filled)} ${text}`;
      return shown.slice(0, Math.max((output.columns || 120) - 1, 20));
    },
  });
  const update = () => {
    const { done = 0, text } = state();
    bar.update(done, { text });
  };
  bar.start(1, 0, { text: state().text });
  const timer = setInterval(update, BAR_INTERVAL_MS);
  return {
    stop() {
      clearInterval(timer);
      bar.stop();
    },
  };
}

function showLines(output: NodeJS.WritableStream, state: () => ProgressState): Progress {
  const timer = setInterval(() => output.write(`${state().text}\n`), LINE_INTERVAL_MS);
  return { stop: () => clearInterval(timer) };
}

const SHOWN_MS = 6_000;

/** Why a command is waiting: the last reason for which it tried again, if that was a moment ago. */
export class RecentTrouble {
  #last: { readonly reason: string; readonly at: number } | undefined;

  /** @param reason a phrase for people */
  note(reason: string): void {
    this.#last = { reason, at: performance.now() };
  }

  get reason(): string | undefined {
    return this.#last && performance.now() - this.#last.at < SHOWN_MS ? this.#last.reason : undefined;
  }
}
