// npm run import: sends a file of submissions or calls to Sluice. `npm run import -- --help` shows its usage.
import { ArgumentsError } from '@sluice/shared/command-line';
import { callersFolder, interruption } from './command/caller.ts';
import { findKey } from './command/find-key.ts';
import { count, rate, showProgress } from './command/progress.ts';
import { IMPORT_HELP, type ImportArguments, parseImportArguments } from './import/arguments.ts';
import { FORMATS, type FormatName } from './import/formats.ts';
import { type ImportCounts, importProgress } from './import/progress.ts';
import { createRefusedLines } from './import/refused-lines.ts';
import { createImport, type ImportEnd } from './import/run-import.ts';
import { createSender } from './import/sender.ts';
import { openSource } from './import/source.ts';

interface Summary extends ImportCounts {
  readonly format: FormatName;
  readonly end: ImportEnd;
  readonly seconds: number;
  readonly refusedFile: string;
}

function summarise({ format, end, seconds, refusedFile, accepted, events, refused }: Summary): string[] {
  const { unit } = FORMATS[format];
  const what = unit === 'calls' ? '' : ` with ${count(events)} events`;
  const lines = [
    `${count(accepted)} ${unit}${what} were accepted in ${seconds.toFixed(1)} s ` +
      `(${count(rate(events, seconds))} events/s); ${count(refused)} ${unit} were refused.`,
  ];
  if (refused > 0) lines.push(`${refusedFile} lists the refused lines with the reasons.`);
  if (end.kind === 'interrupted') lines.push(`Interrupted after line ${count(end.line)}.`);
  if (end.kind === 'stopped') lines.push(`Stopped at line ${count(end.line)}: ${end.reason}.`);
  if (end.kind !== 'complete') {
    lines.push(
      unit === 'calls'
        ? 'Run it again to send the rest. No call is stored twice.'
        : 'Run it again to send the rest. Events with a timestamp or a UUIDv7 are never stored twice; ' +
            'others are recognised as repeats for at least five minutes.',
    );
  }
  return lines;
}

async function importFile(options: ImportArguments): Promise<number> {
  const { format, url, concurrency, giveUpAfterMs, refusedFile } = options;
  const key = await findKey(options.key);
  const signal = interruption();
  const source = await openSource(options.file, signal);
  const refusedLines = await createRefusedLines(refusedFile);
  let trouble: { readonly reason: string; readonly at: number } | undefined;
  const onRetry = (reason: string) => {
    trouble = { reason, at: performance.now() };
  };
  const sender = createSender({ url, key, connectionsMax: concurrency, giveUpAfterMs, onRetry });
  const job = createImport({
    ...{ sender, refusedLines, concurrency, signal },
    format: FORMATS[format],
    chunks: source.chunks,
  });

  const startedAt = performance.now();
  const progress = showProgress(process.stderr, () =>
    importProgress({
      ...job.counts,
      unit: FORMATS[format].unit,
      bytesRead: source.bytesRead(),
      bytesTotal: source.bytesTotal,
      seconds: (performance.now() - startedAt) / 1_000,
      trouble: trouble && performance.now() - trouble.at < 6_000 ? trouble.reason : undefined,
    }),
  );
  const end = await job.run();
  const seconds = (performance.now() - startedAt) / 1_000;
  progress.stop();
  await refusedLines.close();
  for (const line of summarise({ ...job.counts, format, end, seconds, refusedFile })) console.log(line);
  if (end.kind === 'interrupted') return 130;
  return end.kind === 'complete' && job.counts.refused === 0 ? 0 : 1;
}

try {
  const options = parseImportArguments(process.argv.slice(2), callersFolder('import'));
  if (options) process.exit(await importFile(options));
  console.log(IMPORT_HELP);
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException;
  if (!(error instanceof ArgumentsError) && code === undefined) throw error;
  console.error(`${message}\nnpm run import -- --help shows its usage.`);
  process.exit(2);
}
