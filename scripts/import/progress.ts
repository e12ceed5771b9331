import type { WriteStream } from 'node:tty';
import { Presets, SingleBar } from 'cli-progress';
import type { Format } from './format.ts';

/** The counts of an import so far. */
export interface ImportCounts {
  /** Lines that were accepted. */
  readonly accepted: number;
  readonly events: number;
  readonly refused: number;
}

export interface ProgressState extends ImportCounts {
  /** What the lines are. A call is one event. */
  readonly unit: Format['unit'];
  readonly bytesRead: number;
  readonly bytesTotal: number | undefined;
  readonly seconds: number;
  /** Why the import is waiting, if it is. */
  readonly trouble: string | undefined;
}

/** Shows the progress of an import until it is stopped. */
export interface Progress {
  stop(): void;
}

const BAR_INTERVAL_MS = 200;
const LINE_INTERVAL_MS = 5_000;

/** A bar on a terminal; elsewhere a line every few seconds. */
export function showProgress(output: NodeJS.WriteStream & Partial<WriteStream>, state: () => ProgressState): Progress {
  return output.isTTY ? showBar(output, state) : showLines(output, state);
}

/** The progress as one line of text. */
export function progressLine(state: ProgressState): string {
  const { unit, accepted, events, refused, seconds, trouble } = state;
  const parts = [
    ...(state.bytesTotal ? [`${Math.floor((100 * state.bytesRead) / state.bytesTotal)} %`] : []),
    `${count(accepted)} ${unit}`,
    ...(unit === 'submissions' ? [`${count(events)} events`] : []),
    `${count(rate(events, seconds))} events/s`,
    ...(refused > 0 ? [`${count(refused)} refused`] : []),
    ...timeLeft(state),
    ...(trouble === undefined ? [] : [`waiting: ${trouble}`]),
  ];
  return parts.join(', ');
}

/** A number with separators between thousands. */
export function count(value: number): string {
  return value.toLocaleString('en');
}

/** Events per second, as a whole number. */
export function rate(events: number, seconds: number): number {
  return Math.round(events / Math.max(seconds, 0.001));
}

function timeLeft({ bytesRead, bytesTotal, seconds }: ProgressState): string[] {
  if (!bytesTotal || bytesRead === 0 || seconds < 1) return [];
  const left = Math.ceil((seconds * (bytesTotal - bytesRead)) / bytesRead);
  const minutes = Math.floor(left / 60);
  return [minutes > 0 ? `about ${minutes} min ${left % 60} s left` : `about ${left} s left`];
}

function showBar(output: NodeJS.WriteStream, state: () => ProgressState): Progress {
  const bar = new SingleBar({
    ...Presets.shades_classic,
    stream: output,
    hideCursor: true,
    clearOnComplete: true,
    format: (_options, { progress }, { line }: { line: string }) => {
      const filled = Math.round(20 * Math.min(progress, 1));
      const shown = `${'█'.repeat(filled)}${'░'.repeat(20 - filled)} ${line}`;
      return shown.slice(0, Math.max((output.columns || 120) - 1, 20));
    },
  });
  const update = () => {
    const now = state();
    bar.update(now.bytesRead, { line: progressLine(now) });
  };
  bar.start(state().bytesTotal ?? 1, 0, { line: progressLine(state()) });
  const timer = setInterval(update, BAR_INTERVAL_MS);
  return {
    stop() {
      clearInterval(timer);
      bar.stop();
    },
  };
}

function showLines(output: NodeJS.WritableStream, state: () => ProgressState): Progress {
  const timer = setInterval(() => output.write(`${progressLine(state())}\n`), LINE_INTERVAL_MS);
  return { stop: () => clearInterval(timer) };
}
