import { execFileSync } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus, totalmem } from 'node:os';
import { basename, join } from 'node:path';
import type { OtherWork } from '../measure/other-work.ts';
import type { Figure } from './benchmark.ts';

const FOLDER = join(import.meta.dirname, '..', 'results');
const ROOT = join(import.meta.dirname, '..', '..');

/** What decides how fast the code is. Results and documents do not. */
const CODE = ['.', ':!bench/results', ':!docs'];

/** What the last run of a benchmark measured: a file of `bench/results`. */
export interface BenchResult {
  /** The name of the benchmark. */
  readonly name: string;
  /** When the run ended, in ISO 8601. */
  readonly date: string;
  /** With `-dirty` when the code differed from it. */
  readonly commit: string;
  readonly machine: {
    readonly cpu: string;
    readonly cores: number;
    readonly memoryGiB: number;
    readonly node: string;
  };
  readonly otherWork: OtherWork;
  readonly size: Readonly<Record<string, number>>;
  readonly figures: readonly Figure[];
}

/** Writes the result of a run that has just ended. */
export async function writeResult(run: Pick<BenchResult, 'name' | 'otherWork' | 'size' | 'figures'>): Promise<void> {
  const { name, otherWork, size, figures } = run;
  const result: BenchResult = {
    name,
    date: new Date().toISOString(),
    commit: commitOfCode(),
    machine: {
      cpu: cpus()[0]?.model.trim() ?? 'unknown',
      cores: availableParallelism(),
      memoryGiB: Math.round(totalmem() / 2 ** 30),
      node: process.version,
    },
    otherWork,
    size,
    figures: figures.map(rounded),
  };
  await mkdir(FOLDER, { recursive: true });
  await writeFile(join(FOLDER, `${name}.json`), `${JSON.stringify(result, undefined, 2)}\n`);
}

/** Reads the results of all benchmarks that have one, by their names. */
export async function readResults(): Promise<ReadonlyMap<string, BenchResult>> {
  const files = (await readdir(FOLDER)).filter((file) => file.endsWith('.json'));
  const results = files.map(async (file) => {
    const result: BenchResult = JSON.parse(await readFile(join(FOLDER, file), 'utf8'));
    return [basename(file, '.json'), result] as const;
  });
  return new Map(await Promise.all(results));
}

function commitOfCode(): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();
  const changed = git('status', '--porcelain', '--', ...CODE) !== '';
  return git('rev-parse', '--short', 'HEAD') + (changed ? '-dirty' : '');
}

/** To six digits: more are noise. */
function rounded(figure: Figure): Figure {
  const round = (value: number) => Number(value.toPrecision(6));
  const { lowest, highest } = figure;
  return {
    ...figure,
    value: round(figure.value),
    ...(lowest !== undefined && { lowest: round(lowest) }),
    ...(highest !== undefined && { highest: round(highest) }),
  };
}
