// npm run simulate: Sluice in a simulated world, under thousands of faults. `npm run simulate -- --help` tells more.
import { ArgumentsError, parseArguments, runCommand } from '@sluice/shared/config/command-line';
import { KINDS } from '../tests/simulation/kinds.ts';
import { type Kind, type Outcome, runSchedule } from '../tests/simulation/world/run-schedule.ts';
import { shrink } from '../tests/simulation/world/shrink.ts';

const NAMES = KINDS.map(({ name }) => name);

const HELP = `Usage: npm run simulate -- [--only ${NAMES.join('|')}] [--seed N [--trace]] [--schedules M | --seconds S]

Runs ingest-apis and writers, with kafkajs and all of their own code, on a simulated Kafka, a simulated ClickHouse and a
virtual clock: writers alone, clients and ingest-apis alone, all of the pipeline with an operator who changes rejected
calls and replays them, writers of several ClickHouse servers that are fed from one log and have to be equal in the end,
those of servers that share the partitions, of replicas that copy their rows, of replicas that share them behind one address, or of a
server behind whose address there is a second one for a while; and query-apis that store and deliver webhooks, and store saved views.
Each schedule follows from its seed: what is sent, how long everything takes, and what goes wrong when. Processes are
killed and frozen, responses lost, clocks set, partitions moved, logs cut off. At each moment and in the end, what clients
were told is compared with what is stored.

Tries one seed after the other. The first schedule that fails is shortened and printed.

  --only KIND    run schedules of one kind (default: of each kind in turn)
  --seed N       begin with this seed, a whole number (default: random, and printed). Without --schedules and --seconds,
                 only its schedules are run, and their digests printed: each run of a seed prints the same
  --trace        with a single schedule: print everything that happens
  --schedules M  how many schedules are run, 1 to 10000000
  --seconds S    how long schedules are run, 1 to 86400 (default 60)
  --help         this text

Exit codes: 0 all is well; 1 something was lost, doubled, invented or never stored; 2 the arguments are wrong.`;

const EXIT_CODE_INTERRUPTED = 130;
const PROGRESS_MS = 10_000;

/** The clock of this process, also while a simulation replaces it. */
const nowMs = performance.now.bind(performance);

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => process.exit(EXIT_CODE_INTERRUPTED));

process.exit(await runCommand('npm run simulate --', main));

async function main(): Promise<number> {
  const { values } = parseArguments({
    args: process.argv.slice(2),
    options: {
      only: { type: 'string' },
      seed: { type: 'string' },
      trace: { type: 'boolean' },
      schedules: { type: 'string' },
      seconds: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const kinds = kindsOf(values.only);
  const isSingle = values.seed !== undefined && values.schedules === undefined && values.seconds === undefined;
  if (values.trace && !isSingle) throw new ArgumentsError('--trace goes with --seed alone, or with --only.');
  if (values.schedules !== undefined && values.seconds !== undefined) {
    throw new ArgumentsError('--schedules and --seconds do not go together.');
  }
  const first = Math.floor(Math.random() * 1_000_000_000);
  const seed = wholeNumber('--seed', values.seed ?? String(first), 0, Number.MAX_SAFE_INTEGER);
  const schedules = wholeNumber('--schedules', values.schedules ?? '10000000', 1, 10_000_000);
  const seconds =
    values.schedules === undefined ? wholeNumber('--seconds', values.seconds ?? '60', 1, 86_400) : Infinity;
  if (!isSingle) return await trySeeds(kinds, seed, { schedules, seconds });
  for (const kind of kinds) if (!(await runSeed(kind, seed, values.trace ?? false))) return 1;
  return 0;
}

function kindsOf(only: string | undefined): readonly Kind[] {
  const kinds = KINDS.filter(({ name }) => only === undefined || name === only);
  if (kinds.length === 0) throw new ArgumentsError(`--only must be one of ${NAMES.join(', ')}, not "${only}".`);
  return kinds;
}

function wholeNumber(name: string, text: string, least: number, most: number): number {
  const number = Number(text);
  if (text.trim() !== '' && Number.isSafeInteger(number) && number >= least && number <= most) return number;
  throw new ArgumentsError(`${name} must be a whole number from ${least} to ${most}, not "${text}".`);
}

/** Returns whether all is well. */
async function runSeed(kind: Kind, seed: number, isTraced: boolean): Promise<boolean> {
  const outcome = await runSchedule(kind, seed, undefined, isTraced ? (line) => console.log(line) : undefined);
  const { faults, happened, virtualMs, digest } = outcome;
  const minutes = (virtualMs / 60_000).toFixed(1);
  console.log(
    `${kind.name}, seed ${seed}: ${faults.length} faults, ${happened} steps, ${minutes} virtual minutes, digest ${digest}`,
  );
  if (outcome.violation === undefined) return true;
  await explain(kind, seed, outcome);
  return false;
}

async function trySeeds(
  kinds: readonly Kind[],
  first: number,
  most: { readonly schedules: number; readonly seconds: number },
): Promise<number> {
  const startedAt = nowMs();
  const passed = () => (nowMs() - startedAt) / 1_000;
  const sums = { schedules: 0, faults: 0, steps: 0 };
  let seed = first;
  const report = () => {
    const { schedules, faults, steps } = sums;
    const rate = (count: number) => (count / passed()).toFixed(1);
    console.log(
      `${schedules} schedules (${rate(schedules)} a second), ${faults} faults (${rate(faults)} a second), ` +
        `${steps} steps (${rate(steps)} a second), seeds ${first} to ${seed}`,
    );
  };
  let reportedAt = nowMs();
  while (passed() < most.seconds && sums.schedules < most.schedules) {
    seed = first + Math.floor(sums.schedules / kinds.length);
    const kind = kinds[sums.schedules % kinds.length] as Kind;
    const outcome = await runSchedule(kind, seed);
    sums.schedules += 1;
    sums.faults += outcome.faults.length;
    sums.steps += outcome.happened;
    if (outcome.violation !== undefined) {
      report();
      await explain(kind, seed, outcome);
      return 1;
    }
    if (nowMs() - reportedAt < PROGRESS_MS) continue;
    reportedAt = nowMs();
    report();
  }
  report();
  console.log('Nothing was lost, doubled or invented.');
  return 0;
}

/** Prints what is wrong, and the shortest schedule in which it is. */
async function explain(kind: Kind, seed: number, failing: Outcome): Promise<void> {
  console.log(`\nWRONG: ${failing.violation}\nLooking for a shorter schedule than ${failing.faults.length} faults …`);
  const shortest = await shrink(kind, seed, failing);
  const steps: string[] = [];
  await runSchedule(kind, seed, shortest.faults, (line) => steps.push(line));
  console.log(`\nThe shortest one has ${shortest.faults.length} faults:\n${steps.join('\n')}\n`);
  console.log(`WRONG: ${shortest.violation}`);
  console.log(`Run it again with: npm run simulate -- --only ${kind.name} --seed ${seed} --trace`);
}
