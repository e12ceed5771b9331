import { ArgumentsError } from '@sluice/shared/config/command-line';
import type { Command, Environment } from '../command/command.ts';
import { interruption } from '../command/terminal.ts';
import { findKey } from '../transfer/find-key.ts';
import { count, RecentTrouble, rate, showProgress } from '../transfer/progress.ts';
import { type ImportArguments, importHelp, parseImportArguments } from './arguments.ts';
import { FORMATS, type FormatName } from './formats.ts';
import { type ImportCounts, importProgress } from './progress.ts';
import { RefusedLines } from './refused-lines.ts';
import { Import, type ImportEnd } from './run-import.ts';
import { Sender } from './sender.ts';
import { Source } from './source.ts';

/** Sends a file of submissions or calls to Sluice. */
export const importCommand: Command = {
  help: importHelp,
  run: (args, { env, cwd }) => importFile(parseImportArguments(args, cwd), env),
};

async function importFile(options: ImportArguments, env: Environment): Promise<number> {
  const { format, url, concurrency, giveUpAfterMs, refusedFile } = options;
  const key = await findKey(options.key, env);
  const signal = interruption();
  const source = await Source.open(options.file, signal);
  const refusedLines = await RefusedLines.create(refusedFile);
  const trouble = new RecentTrouble();
  const onRetry = (reason: string) => trouble.note(reason);
  const sender = new Sender({ url, key, connectionsMax: concurrency, giveUpAfterMs, onRetry });
  const job = new Import({
    ...{ sender, refusedLines, concurrency, signal },
    format: FORMATS[format],
    chunks: source.chunks(),
  });

  const startedAt = performance.now();
  const progress = showProgress(process.stderr, () =>
    importProgress({
      ...job.counts,
      unit: FORMATS[format].unit,
      bytesRead: source.bytesRead,
      bytesTotal: source.bytesTotal,
      seconds: (performance.now() - startedAt) / 1_000,
      trouble: trouble.reason,
    }),
  );
  const end = await job.run();
  const seconds = (performance.now() - startedAt) / 1_000;
  progress.stop();
  await refusedLines.close();
  if (end.kind === 'other_format') throw new ArgumentsError(mistakenFormat(end, format));
  for (const line of summarise({ ...job.counts, format, end, seconds, refusedFile })) console.log(line);
  if (end.kind === 'interrupted') return 130;
  return end.kind === 'complete' && job.counts.refused === 0 ? 0 : 1;
}

function mistakenFormat({ found, line }: Extract<ImportEnd, { kind: 'other_format' }>, format: FormatName): string {
  const advice = found.format
    ? `it can be imported with --format ${found.format}`
    : 'only lines of JSON can be imported (an export with --format ndjson)';
  return `Line ${count(line)} is ${found.what}, and not what --format ${format} means: ${advice}. Nothing was sent.`;
}

interface Summary extends ImportCounts {
  readonly format: FormatName;
  readonly end: ImportEnd;
  readonly seconds: number;
  readonly refusedFile: string;
}

function summarise({ format, end, seconds, refusedFile, accepted, events, refused }: Summary): string[] {
  const { unit } = FORMATS[format];
  const what = unit === 'submissions' ? ` with ${count(events)} events` : '';
  const lines = [
    `${count(accepted)} ${unit}${what} were accepted in ${seconds.toFixed(1)} s ` +
      `(${count(rate(events, seconds))} events/s); ${count(refused)} ${unit} were refused.`,
  ];
  if (refused > 0) lines.push(`${refusedFile} lists the refused lines with the reasons.`);
  if (end.kind === 'interrupted') lines.push(`Interrupted after line ${count(end.line)}.`);
  if (end.kind === 'stopped') lines.push(`Stopped at line ${count(end.line)}: ${end.reason}.`);
  if (end.kind !== 'complete') {
    lines.push(
      unit === 'submissions'
        ? 'Run it again to send the rest. Events with a timestamp or a UUIDv7 are never stored twice; ' +
            'others are recognised as repeats for at least five minutes.'
        : `Run it again to send the rest. No ${unit === 'calls' ? 'call' : 'event'} is stored twice.`,
    );
  }
  return lines;
}
