// npm run import: sends a file of submissions or calls to Sluice. `npm run import -- --help` shows its usage.
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { ArgumentsError } from '@sluice/shared/command-line';
import { IMPORT_HELP, type ImportArguments, parseImportArguments } from './import/arguments.ts';
import { FORMATS, type FormatName } from './import/formats.ts';
import { count, type ImportCounts, rate, showProgress } from './import/progress.ts';
import { createRefusedLines } from './import/refused-lines.ts';
import { createImport, type ImportEnd } from './import/run-import.ts';
import { createSender } from './import/sender.ts';
import { openSource } from './import/source.ts';

const root = join(import.meta.dirname, '..');

/** The key from the arguments or the environment, else the development key of npm start. */
async function findKey(given: string | undefined): Promise<string> {
  const key = given ?? (process.env['SLUICE_API_KEY'] || process.env['SLUICE_DEV_KEY']);
  if (key) return key;
  const dataDir = resolve(root, process.env['SLUICE_DATA_DIR'] || '.sluice');
  const kept = await readFile(join(dataDir, 'dev-key'), 'utf8').catch(() => '');
  if (kept.trim() !== '') return kept.trim();
  throw new ArgumentsError('A key is needed: pass --key, set SLUICE_API_KEY, or run npm start once.');
}

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

/** Aborts at the first signal; a second one ends the process at once. */
function interruption(): AbortSignal {
  const controller = new AbortController();
  let at = 0;
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      // One Ctrl-C arrives twice: from the terminal and from npm.
      if (controller.signal.aborted && performance.now() - at > 500) process.exit(130);
      at ||= performance.now();
      controller.abort();
    });
  }
  return controller.signal;
}

async function importFile(options: ImportArguments): Promise<number> {
  const { format, url, concurrency, giveUpAfterMs, refusedFile } = options;
  const key = await findKey(options.key);
  // No header can carry any other key, so every request would fail.
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new ArgumentsError('The key must be visible ASCII characters, without spaces and line feeds.');
  }
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
  const progress = showProgress(process.stderr, () => ({
    ...job.counts,
    unit: FORMATS[format].unit,
    bytesRead: source.bytesRead(),
    bytesTotal: source.bytesTotal,
    seconds: (performance.now() - startedAt) / 1_000,
    trouble: trouble && performance.now() - trouble.at < 6_000 ? trouble.reason : undefined,
  }));
  const end = await job.run();
  const seconds = (performance.now() - startedAt) / 1_000;
  progress.stop();
  await refusedLines.close();
  for (const line of summarise({ ...job.counts, format, end, seconds, refusedFile })) console.log(line);
  if (end.kind === 'interrupted') return 130;
  return end.kind === 'complete' && job.counts.refused === 0 ? 0 : 1;
}

/** The folder from which the person called npm, which itself runs in the folder of the project. */
function currentFolder(): string {
  const callersFolder = process.env['npm_lifecycle_event'] === 'import' ? process.env['INIT_CWD'] : undefined;
  return callersFolder ?? process.cwd();
}

try {
  const options = parseImportArguments(process.argv.slice(2), currentFolder());
  if (options) process.exit(await importFile(options));
  console.log(IMPORT_HELP);
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException;
  if (!(error instanceof ArgumentsError) && code === undefined) throw error;
  console.error(`${message}\nnpm run import -- --help shows its usage.`);
  process.exit(2);
}
