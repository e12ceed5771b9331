import { access } from 'node:fs/promises';
import { ArgumentsError } from '@sluice/shared/config/command-line';
import { parseTimestamp } from '@sluice/shared/text/timestamp';
import type { Command, Environment } from '../command/command.ts';
import { interruption } from '../command/terminal.ts';
import { findKey } from '../transfer/find-key.ts';
import {
  count,
  type ProgressState,
  percentage,
  RecentTrouble,
  rate,
  showProgress,
  timeLeft,
} from '../transfer/progress.ts';
import { type ExportArguments, exportHelp, parseExportArguments } from './arguments.ts';
import { PartFile } from './part-file.ts';
import { EntitiesExport } from './run-entities-export.ts';
import { Export, type ExportCounts, type ExportEnd, type ExportOptions } from './run-export.ts';

/** Writes all events, users or organizations that match to a file. */
export const exportCommand: Command = {
  help: exportHelp,
  run: (args, { env, cwd }) => exportEvents(parseExportArguments(args, cwd), env),
};

async function exportEvents(given: ExportArguments, env: Environment): Promise<number> {
  const key = await findKey(given.key, env);
  const exists = await access(given.file).then(
    () => true,
    () => false,
  );
  if (exists) throw new ArgumentsError(`${given.file} exists already.`);
  // Parts of one export end at the same time.
  const ends = given.subject === 'events' ? [['endDate', new Date().toISOString()] as const] : [];
  const parameters = new Map([...ends, ...given.parameters]);
  const options = { ...given, parameters };
  const signal = interruption();
  await using part = await PartFile.open(options.file);
  const trouble = new RecentTrouble();
  const onRetry = (reason: string) => trouble.note(reason);
  const job = jobOf(options, { key, part, signal, onRetry });
  const startedAt = performance.now();
  const seconds = () => (performance.now() - startedAt) / 1_000;
  const progress = showProgress(process.stderr, () => progressOf(job.counts, options, seconds(), trouble.reason));
  const end = await job.run();
  progress.stop();
  console.log(summarise(job.counts, end, options, seconds()));
  if (end.kind === 'interrupted') return 130;
  return end.kind === 'complete' ? 0 : 1;
}

function jobOf(options: ExportArguments, more: Pick<ExportOptions, 'key' | 'part' | 'signal' | 'onRetry'>) {
  const { subject } = options;
  return subject === 'events'
    ? new Export({ ...options, ...more })
    : new EntitiesExport({ ...options, ...more, subject });
}

/** Returns which part of the time between startDate and endDate has been exported. */
function doneOf({ lastMs }: ExportCounts, parameters: ReadonlyMap<string, string>): number | undefined {
  const [startMs, endMs] = ['startDate', 'endDate'].map((name) => parseTimestamp(parameters.get(name) ?? '')?.ms);
  if (lastMs === undefined || startMs === undefined || endMs === undefined || endMs <= startMs) return undefined;
  const done = Math.min(1, Math.max(0, (lastMs - startMs) / (endMs - startMs)));
  return parameters.get('orderByDirection')?.toUpperCase() === 'DESC' ? 1 - done : done;
}

function progressOf(
  counts: ExportCounts,
  { parameters, format, subject }: ExportArguments,
  seconds: number,
  trouble: string | undefined,
): ProgressState {
  const done = doneOf(counts, parameters);
  const text = [
    ...percentage(done),
    ...(format === 'ndjson' ? [`${count(counts.events)} ${subject}`] : []),
    `${count(Math.round(counts.bytes / 1_048_576))} MiB`,
    ...timeLeft(done, seconds),
    ...(trouble === undefined ? [] : [`waiting: ${trouble}`]),
  ];
  return { done, text: text.join(', ') };
}

function summarise(
  counts: ExportCounts,
  end: ExportEnd,
  { file, format, subject }: ExportArguments,
  seconds: number,
): string {
  const events = format === 'ndjson' ? `${count(counts.events)} ${subject}, ` : '';
  const again = subject === 'events' ? `Run it again to continue ${file}.part.` : 'Run it again: it begins anew.';
  switch (end.kind) {
    case 'complete':
      return `${file} is complete: ${events}${count(counts.bytes)} bytes in ${seconds.toFixed(1)} s (${count(rate(counts.bytes / 1_048_576, seconds))} MiB/s).`;
    case 'interrupted':
      return `Interrupted. ${again}`;
    case 'stopped':
      return `Stopped: ${end.reason.replace(/\.$/, '')}.\n${again}`;
  }
}
