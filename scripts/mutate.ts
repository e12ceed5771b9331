// npm run mutate: mutation testing. Applies faults to the code one by one and lists those that no test detects.
// See `npm run mutate -- --help`.
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { startTestStack, type TestStack } from '@sluice/local-stack/test-stack';
import { parseArguments, runCommand } from '@sluice/shared/command-line';
import { type Mutation, MutationMismatch, mutate } from './mutate/mutation.ts';
import { MUTATIONS } from './mutate/mutations.ts';
import { PLANTED_FAULTS } from './mutate/planted-faults.ts';
import { runSimulation, type SimulationRun, simulatorOf } from './mutate/simulation-run.ts';
import { type Engines, runTests } from './mutate/test-run.ts';
import { createWorkingCopy, type WorkingCopy } from './mutate/working-copy.ts';

const HELP = `Usage: npm run mutate -- [--list] [--no-baseline] [PATTERN ...]
       npm run mutate -- --simulate [--list] [--seed N] [--seconds S] [PATTERN ...]

Applies the mutations of scripts/mutate/mutations.ts to a copy of the working tree, one at a time, and runs the tests
of each. A mutation is killed when a test fails, and survives when all pass. First the tests run without a mutation;
the mutations of a test that already fails are not judged.

With --simulate, the simulator takes the place of the tests: it runs schedules until one fails. Its mutations are
those of scripts/mutate/planted-faults.ts; patterns find those of mutations.ts as well.

  PATTERN         run only mutations whose name or file name contains this text; case is ignored
  --list          list the mutations and run nothing
  --no-baseline   do not run the tests without a mutation first
  --simulate      run the simulator, not the tests
  --seed N        the first seed of the simulator, a whole number (default 1)
  --seconds S     for how long it runs, in seconds of a core (default 60)
  --help          show this text

Exit codes: 0 all killed; 1 a mutation survived, does not fit the code or was not judged; 2 wrong arguments.`;

type Outcome = 'killed' | 'SURVIVED' | 'does not apply' | 'not judged';

interface Result {
  readonly mutation: Mutation;
  readonly outcome: Outcome;
  readonly seconds: number;
  /** The first test that failed; what a survivor breaks; or why there is no outcome. */
  readonly detail: string;
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
      'no-baseline': { type: 'boolean', default: false },
      simulate: { type: 'boolean', default: false },
      seed: { type: 'string', default: '1' },
      seconds: { type: 'string', default: '60' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const selected = candidates(values.simulate, positionals).filter((mutation) => matches(mutation, positionals));
  if (values.list) {
    for (const { name, breaks } of selected) console.log(`${name}: ${breaks}`);
    return 0;
  }
  if (selected.length === 0) {
    console.error('No mutation matches; --list shows them all.');
    return 1;
  }
  try {
    if (values.simulate) return await simulateAll(selected, Number(values.seed), Number(values.seconds));
    return await run(selected, !values['no-baseline']);
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
    return EXIT_CODE_INTERRUPTED;
  }
}

function candidates(isSimulated: boolean, patterns: readonly string[]): readonly Mutation[] {
  if (!isSimulated) return MUTATIONS;
  return patterns.length === 0 ? PLANTED_FAULTS : [...PLANTED_FAULTS, ...MUTATIONS];
}

function matches({ name, file }: Mutation, patterns: readonly string[]): boolean {
  const text = `${name}\n${basename(file)}`.toLowerCase();
  return patterns.length === 0 || patterns.some((pattern) => text.includes(pattern.toLowerCase()));
}

async function simulateAll(mutations: readonly Mutation[], firstSeed: number, secondsMax: number): Promise<number> {
  await using copy = await createWorkingCopy(root);
  return await tryAll(mutations, async (mutation) => {
    const { file, breaks } = mutation;
    const mutated = mutate(await readFile(join(copy.path, file), 'utf8'), mutation);
    const simulate = (options: Pick<SimulationRun, 'firstSeed' | 'schedulesMax'>) =>
      runSimulation(copy.path, simulatorOf(file), { secondsMax, signal: interrupted.signal, ...options });
    const { seed, violation, seconds } = await copy.withFile(file, mutated, () =>
      simulate({ firstSeed, schedulesMax: Number.MAX_SAFE_INTEGER }),
    );
    if (violation !== undefined) {
      const without = await simulate({ firstSeed: seed, schedulesMax: 1 });
      if (without.violation !== undefined) {
        return { outcome: 'not judged', seconds, detail: `seed ${seed} fails without it: ${without.violation}` };
      }
      return { outcome: 'killed', seconds, detail: `seed ${seed}: ${violation}` };
    }
    return { outcome: 'SURVIVED', seconds, detail: `${seed - firstSeed} schedules; ${breaks}` };
  });
}

async function run(mutations: readonly Mutation[], withBaseline: boolean): Promise<number> {
  await using copy = await createWorkingCopy(root);
  await using stack = createSharedStack();
  const broken = withBaseline ? await runBaseline(copy, mutations, stack) : new Set<string>();
  return await tryAll(mutations, (mutation) => tryTests(copy, mutation, broken, stack));
}

/** Tries one mutation after the other and prints what comes of them. Returns the exit code. */
async function tryAll(
  mutations: readonly Mutation[],
  attempt: (mutation: Mutation) => Promise<Omit<Result, 'mutation'>>,
): Promise<number> {
  const results: Result[] = [];
  for (const mutation of mutations) {
    const tried = await attempt(mutation).catch((error): Omit<Result, 'mutation'> => {
      if (!(error instanceof MutationMismatch)) throw error;
      return { outcome: 'does not apply', seconds: 0, detail: error.message };
    });
    const result = { mutation, ...tried };
    results.push(result);
    console.log(`${result.outcome.padEnd(14)} ${seconds(result)}  ${mutation.name}: ${result.detail}`);
  }
  printTable(results);
  return results.every(({ outcome }) => outcome === 'killed') ? 0 : 1;
}

/** Returns the test files that fail without a mutation. */
async function runBaseline(
  copy: WorkingCopy,
  mutations: readonly Mutation[],
  stack: SharedStack,
): Promise<Set<string>> {
  const broken = new Set<string>();
  for (const file of new Set(mutations.flatMap(({ tests }) => tests))) {
    const { passed, failed, output, ...taken } = await runTests(
      copy.path,
      [file],
      await stack.enginesFor([file]),
      interrupted.signal,
    );
    console.log(
      `${(passed ? 'ok' : 'FAILS ALREADY').padEnd(14)} ${seconds(taken)}  ${file}${passed ? '' : `: ${failed}`}`,
    );
    if (passed) continue;
    console.log(output.slice(-4_000));
    broken.add(file);
  }
  return broken;
}

async function tryTests(
  copy: WorkingCopy,
  mutation: Mutation,
  broken: ReadonlySet<string>,
  stack: SharedStack,
): Promise<Omit<Result, 'mutation'>> {
  const { file, tests } = mutation;
  const failing = tests.find((test) => broken.has(test));
  if (failing) return { outcome: 'not judged', seconds: 0, detail: `${failing} fails without it` };
  const mutated = mutate(await readFile(join(copy.path, file), 'utf8'), mutation);
  const engines = await stack.enginesFor(tests);
  const tested = await copy.withFile(file, mutated, () => runTests(copy.path, tests, engines, interrupted.signal));
  const outcome = tested.passed ? 'SURVIVED' : 'killed';
  return { outcome, seconds: tested.seconds, detail: tested.failed ?? mutation.breaks };
}

interface SharedStack extends AsyncDisposable {
  /** Returns the stack that all service tests share; undefined for tests that start engines of their own. */
  enginesFor(tests: readonly string[]): Promise<Engines | undefined>;
}

/** Service tests can share engines, because each uses its own topics and database. */
function createSharedStack(): SharedStack {
  let stack: Promise<TestStack> | undefined;
  return {
    async enginesFor(tests) {
      if (tests.some((file) => file.startsWith('tests/'))) return undefined;
      stack ??= startTestStack();
      const { kafkaBrokers, clickhouseUrl } = await stack;
      return { kafkaBrokers, clickhouseUrl };
    },
    async [Symbol.asyncDispose]() {
      await (await stack)?.stop();
    },
  };
}

function seconds({ seconds: taken }: { readonly seconds: number }): string {
  return `${taken.toFixed(1).padStart(6)} s`;
}

/** Prints the results as a Markdown table. */
function printTable(results: readonly Result[]): void {
  const counts = Map.groupBy(results, ({ outcome }) => outcome);
  console.log('\n| mutation | outcome | killed by |\n| --- | --- | --- |');
  for (const { mutation, outcome, detail } of results) {
    console.log(`| ${mutation.name} | ${outcome} | ${detail.replaceAll('|', '\\|').replaceAll('\n', ' ')} |`);
  }
  console.log(`\n${[...counts].map(([outcome, of]) => `${of.length} ${outcome}`).join(', ')}, of ${results.length}`);
}
