import { count, type ProgressState, percentage, rate, timeLeft } from '../transfer/progress.ts';
import type { Format } from './format.ts';

/** The counts of an import so far. */
export interface ImportCounts {
  /** Lines that were accepted. */
  readonly accepted: number;
  readonly events: number;
  readonly refused: number;
}

export interface ImportState extends ImportCounts {
  /** What the lines are. A call is one event. */
  readonly unit: Format['unit'];
  readonly bytesRead: number;
  readonly bytesTotal: number | undefined;
  readonly seconds: number;
  /** Why the import is waiting, if it is. */
  readonly trouble: string | undefined;
}

/** Returns the progress of an import. */
export function importProgress(state: ImportState): ProgressState {
  const { unit, accepted, events, refused, seconds, trouble, bytesRead, bytesTotal } = state;
  const done = bytesTotal ? bytesRead / bytesTotal : undefined;
  const parts = [
    ...percentage(done),
    `${count(accepted)} ${unit}`,
    ...(unit === 'submissions' ? [`${count(events)} events`] : []),
    `${count(rate(events, seconds))} events/s`,
    ...(refused > 0 ? [`${count(refused)} refused`] : []),
    ...timeLeft(done, seconds),
    ...(trouble === undefined ? [] : [`waiting: ${trouble}`]),
  ];
  return { done, text: parts.join(', ') };
}
