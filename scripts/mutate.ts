// npm run mutate: mutation testing, of files by their tests, and of the simulator. See `npm run mutate -- --help`.
import { access, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { ArgumentsError, parseArguments, runCommand } from '@sluice/shared/config/command-line';
import { PLANTED_BUILD_FAULTS } from './mutate/planted-build-faults.ts';
import { FaultMismatch, type PlantedFault, plant, type TestedFault } from './mutate/planted-fault.ts';
import { PLANTED_SIMULATOR_FAULTS } from './mutate/planted-simulator-faults.ts';
import { runSimulation, type SimulationRun } from './mutate/simulation-run.ts';
import { runStryker } from './mutate/stryker.ts';
import { runTestFiles } from './mutate/test-run.ts';
import { createWorkingCopy, type WorkingCopy } from './mutate/working-copy.ts';

const HELP = `Usage: npm run mutate -- FILE ...
       npm run mutate -- --simulate [--list] [--seed N] [--seconds S] [PATTERN ...]
       npm run mutate -- --planted [--list] [PATTERN ...]

Puts faults into a copy of the working tree, one at a time, and says which of them nothing notices.

With files, Stryker chooses the faults and runs the tests of their folders. It is installed into .cache/stryker at first,
and prints each fault that survives. Choose files with tests beside them that are quick: there are some hundred faults in
100 lines. It does not look into SQL.

With --simulate, the faults are those of scripts/mutate/planted-simulator-faults.ts, and the simulator runs schedules until one fails that passes without the fault.

With --planted, the faults are those of scripts/mutate/planted-build-faults.ts, in code that no simulator covers. The tests
that each of them names run until one fails, which passes without the faults: all of these tests run once before. It ends
with a table in Markdown: the fault, and what found it.

  FILE         a TypeScript file, such as packages/storage/src/protocol/epoch.ts
  PATTERN      only faults whose name or file contains this text; case is ignored
  --list       list the planted faults and run nothing
  --seed N     the first seed of the simulator, a whole number (default 1)
  --seconds S  for how long it looks for one fault, in seconds of a core (default 60)
  --help       show this text

Exit codes: 0 with --simulate or --planted: all found; with files: Stryker has run; 1 otherwise; 2 wrong arguments.`;

type Outcome = 'found' | 'NOT FOUND' | 'does not fit' | 'not judged';

interface Result {
  readonly fault: PlantedFault;
  readonly outcome: Outcome;
  readonly seconds: number;
  /** What the simulator or which test found it; what else it is that breaks; or why there is no outcome. */
  readonly detail: string;
  /** The file of the test that found it. */
  readonly test?: string;
}

const EXIT_CODE_INTERRUPTED = 130;
const root = join(import.meta.dirname, '..');
const interrupted = new AbortController();

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interrupted.abort());
process.once('disconnect', () => interrupted.abort());

process.exit(await runCommand('npm run mutate --', main));

async function main(): Promise<number> {
  const { values, positionals } = parseArguments({
    args: process.argv.slice(2),
    allowPositionals: true,
    options: {
      list: { type: 'boolean', default: false },
      simulate: { type: 'boolean', default: false },
      planted: { type: 'boolean', default: false },
      seed: { type: 'string', default: '1' },
      seconds: { type: 'string', default: '60' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  try {
    if (values.planted) {
      const selected = selectedOf(PLANTED_BUILD_FAULTS, positionals);
      return values.list ? list(selected) : await testAll(selected);
    }
    if (!values.simulate) return await mutateFiles(positionals);
    const selected = selectedOf(PLANTED_SIMULATOR_FAULTS, positionals);
    if (values.list) return list(selected);
    return await simulateAll(selected, wholeNumber(values, 'seed'), wholeNumber(values, 'seconds'));
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
    return EXIT_CODE_INTERRUPTED;
  }
}

function wholeNumber<Name extends string>(values: Readonly<Record<Name, string>>, name: Name): number {
  const number = Number(values[name]);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw new ArgumentsError(`--${name} must be a whole number, not "${values[name]}".`);
}

/** @throws {ArgumentsError} when there are none, or one is no TypeScript file of the project */
async function mutateFiles(names: readonly string[]): Promise<number> {
  if (names.length === 0) throw new ArgumentsError('Name files, or use --simulate or --planted.');
  const files = names.map((name) => relative(root, join(process.cwd(), name)));
  for (const [index, file] of files.entries()) {
    const isThere = await access(join(root, file)).then(
      () => file.endsWith('.ts') && !file.startsWith('..'),
      () => false,
    );
    if (!isThere) throw new ArgumentsError(`${names[index]} is no TypeScript file of the project.`);
  }
  await using copy = await createWorkingCopy(root);
  return await runStryker(root, copy, files, interrupted.signal);
}

/** @throws {ArgumentsError} when none matches */
function selectedOf<Fault extends PlantedFault>(
  faults: readonly Fault[],
  patterns: readonly string[],
): readonly Fault[] {
  const found = faults.filter(({ name, file }) => {
    const text = `${name}\n${file}`.toLowerCase();
    return patterns.length === 0 || patterns.some((pattern) => text.includes(pattern.toLowerCase()));
  });
  if (found.length === 0) throw new ArgumentsError('No planted fault matches; --list shows them all.');
  return found;
}

function list(faults: readonly PlantedFault[]): number {
  for (const { name, breaks } of faults) console.log(`${name}: ${breaks}`);
  return 0;
}

async function simulateAll(faults: readonly PlantedFault[], firstSeed: number, secondsMax: number): Promise<number> {
  await using copy = await createWorkingCopy(root);
  const results = await tryAll(faults, (fault) => trySimulator(copy, fault, { firstSeed, secondsMax }));
  return exitCodeOf(results);
}

async function testAll(faults: readonly TestedFault[]): Promise<number> {
  await using copy = await createWorkingCopy(root);
  const { signal } = interrupted;
  const files = [...new Set(faults.flatMap(({ tests }) => tests))];
  const without = await runTestFiles(copy.path, files, { endsWithFirst: false, signal });
  const failing = new Map(without.failed.map(({ file, failures }) => [file, failures[0] ?? '']));
  for (const [file, failure] of failing) console.log(`fails without a fault: ${file}: ${failure}`);
  const results = await tryAll(faults, (fault) => tryTests(copy, fault, failing));
  const rows = results.map(({ fault, outcome, test = outcome }) => `| ${fault.name} | ${fault.file} | ${test} |`);
  console.log(['| Fault | File | Found by |', '|---|---|---|', ...rows].join('\n'));
  return exitCodeOf(results);
}

/** Tries one fault after the other, and prints each result. */
async function tryAll<Fault extends PlantedFault>(
  faults: readonly Fault[],
  attempt: (fault: Fault) => Promise<Omit<Result, 'fault'>>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  for (const fault of faults) {
    const tried = await attempt(fault).catch((error): Omit<Result, 'fault'> => {
      if (!(error instanceof FaultMismatch)) throw error;
      return { outcome: 'does not fit', seconds: 0, detail: error.message };
    });
    const result = { fault, ...tried };
    results.push(result);
    console.log(
      `${result.outcome.padEnd(12)} ${result.seconds.toFixed(1).padStart(6)} s  ${fault.name}: ${result.detail}`,
    );
  }
  return results;
}

function exitCodeOf(results: readonly Result[]): number {
  const counts = Map.groupBy(results, ({ outcome }) => outcome);
  console.log(`${[...counts].map(([outcome, of]) => `${of.length} ${outcome}`).join(', ')}, of ${results.length}`);
  return results.every(({ outcome }) => outcome === 'found') ? 0 : 1;
}

async function trySimulator(
  copy: WorkingCopy,
  fault: PlantedFault,
  { firstSeed, secondsMax }: Pick<SimulationRun, 'firstSeed' | 'secondsMax'>,
): Promise<Omit<Result, 'fault'>> {
  const { name, file, breaks } = fault;
  const [simulator = ''] = name.split('/');
  const faulty = plant(await readFile(join(copy.path, file), 'utf8'), fault);
  const simulate = (options: Pick<SimulationRun, 'firstSeed' | 'schedulesMax'>) =>
    runSimulation(copy.path, simulator, { secondsMax, signal: interrupted.signal, ...options });
  const { seed, violation, seconds } = await copy.withFile(file, faulty, () =>
    simulate({ firstSeed, schedulesMax: Number.MAX_SAFE_INTEGER }),
  );
  if (violation === undefined) {
    return { outcome: 'NOT FOUND', seconds, detail: `${seed - firstSeed} schedules; ${breaks}` };
  }
  const without = await simulate({ firstSeed: seed, schedulesMax: 1 });
  if (without.violation !== undefined) {
    return { outcome: 'not judged', seconds, detail: `seed ${seed} fails without it: ${without.violation}` };
  }
  return { outcome: 'found', seconds, detail: `seed ${seed}: ${violation}` };
}

/** @param failing the files that fail without a fault, with the reason */
async function tryTests(
  copy: WorkingCopy,
  fault: TestedFault,
  failing: ReadonlyMap<string, string>,
): Promise<Omit<Result, 'fault'>> {
  const { file, breaks, tests } = fault;
  const judging = tests.filter((test) => !failing.has(test));
  if (judging.length === 0) return { outcome: 'not judged', seconds: 0, detail: 'its tests fail without it' };
  const faulty = plant(await readFile(join(copy.path, file), 'utf8'), fault);
  const { failed, seconds } = await copy.withFile(file, faulty, () =>
    runTestFiles(copy.path, judging, { endsWithFirst: true, signal: interrupted.signal }),
  );
  const [first] = failed;
  if (!first) return { outcome: 'NOT FOUND', seconds, detail: breaks };
  const detail = `${first.file}: ${first.failures[0]?.split('\n')[0] ?? ''}`;
  return { outcome: 'found', seconds, detail, test: first.file };
}
