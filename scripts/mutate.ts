// npm run mutate: puts faults into the code one by one, and tells which of them no test notices.
// `npm run mutate -- --help` tells more.
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { startTestStack, type TestStack } from '@sluice/local-stack/test-stack';
import { parseArguments, runCommand } from '@sluice/shared/command-line';
import { type Mutation, MutationMismatch, mutate } from './mutate/mutation.ts';
import { MUTATIONS } from './mutate/mutations.ts';
import { type Engines, runTests } from './mutate/test-run.ts';
import { createWorkingCopy, type WorkingCopy } from './mutate/working-copy.ts';

const HELP = `Usage: npm run mutate -- [--list] [--no-baseline] [PATTERN ...]

Puts the faults of scripts/mutate/mutations.ts into a copy of the working tree, one at a time, and runs the tests that
must notice each: a mutation that they notice is killed, one that they do not notice survives. First the same tests run
without any mutation; where one fails so, nothing can be said of its mutations.

  PATTERN         only mutations with this in their name or in that of their file; letters in any case
  --list          names the mutations and runs nothing
  --no-baseline   does not run the tests without mutations first
  --help          this text

Exit codes: 0 all were killed, 1 one survived, does not fit the code, or could not be judged, 2 the arguments are wrong.`;

type Outcome = 'killed' | 'SURVIVED' | 'does not apply' | 'not judged';

interface Result {
  readonly mutation: Mutation;
  readonly outcome: Outcome;
  readonly seconds: number;
  /** The test that noticed, or why the mutation does not apply. */
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
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const selected = MUTATIONS.filter((mutation) => matches(mutation, positionals));
  if (values.list) {
    for (const { name, breaks } of selected) console.log(`${name}: ${breaks}`);
    return 0;
  }
  if (selected.length === 0) {
    console.error('No mutation matches; --list names them all.');
    return 1;
  }
  try {
    return await run(selected, !values['no-baseline']);
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
    return EXIT_CODE_INTERRUPTED;
  }
}

function matches({ name, file }: Mutation, patterns: readonly string[]): boolean {
  const text = `${name}\n${basename(file)}`.toLowerCase();
  return patterns.length === 0 || patterns.some((pattern) => text.includes(pattern.toLowerCase()));
}

async function run(mutations: readonly Mutation[], withBaseline: boolean): Promise<number> {
  await using copy = await createWorkingCopy(root);
  await using stack = createSharedStack();
  const broken = withBaseline ? await runBaseline(copy, mutations, stack) : new Set<string>();
  const results: Result[] = [];
  for (const mutation of mutations) {
    const result = await tryMutation(copy, mutation, broken, stack);
    results.push(result);
    console.log(`${result.outcome.padEnd(14)} ${seconds(result)}  ${mutation.name}: ${result.detail}`);
  }
  printTable(results);
  return results.every(({ outcome }) => outcome === 'killed') ? 0 : 1;
}

/** Gives the test files that fail without any mutation. */
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

async function tryMutation(
  copy: WorkingCopy,
  mutation: Mutation,
  broken: ReadonlySet<string>,
  stack: SharedStack,
): Promise<Result> {
  const { file, tests } = mutation;
  const failing = tests.find((test) => broken.has(test));
  if (failing) return { mutation, outcome: 'not judged', seconds: 0, detail: `${failing} fails without it` };
  try {
    const mutated = mutate(await readFile(join(copy.path, file), 'utf8'), mutation);
    const engines = await stack.enginesFor(tests);
    const tested = await copy.withFile(file, mutated, () => runTests(copy.path, tests, engines, interrupted.signal));
    const outcome = tested.passed ? 'SURVIVED' : 'killed';
    return { mutation, outcome, seconds: tested.seconds, detail: tested.failed ?? mutation.breaks };
  } catch (error) {
    if (!(error instanceof MutationMismatch)) throw error;
    return { mutation, outcome: 'does not apply', seconds: 0, detail: error.message };
  }
}

interface SharedStack extends AsyncDisposable {
  /** The engines for these test files: one stack for all tests of services; others start their own. */
  enginesFor(tests: readonly string[]): Promise<Engines | undefined>;
}

/** Tests of a service use topics and databases with names of their own, so that they can share engines. */
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

/** A table in Markdown, for a note. */
function printTable(results: readonly Result[]): void {
  const counts = Map.groupBy(results, ({ outcome }) => outcome);
  console.log('\n| mutation | outcome | noticed by |\n| --- | --- | --- |');
  for (const { mutation, outcome, detail } of results) {
    console.log(`| ${mutation.name} | ${outcome} | ${detail.replaceAll('|', '\\|').replaceAll('\n', ' ')} |`);
  }
  console.log(`\n${[...counts].map(([outcome, of]) => `${of.length} ${outcome}`).join(', ')}, of ${results.length}`);
}
