// npm run simulate: the writers in a simulated world, under thousands of faults. `npm run simulate -- --help` tells more.
import { ArgumentsError, parseArguments, runCommand } from '@sluice/shared/command-line';
import { type Outcome, runSchedule } from '../tests/simulation/writer/run-schedule.ts';
import { shrink } from '../tests/simulation/writer/shrink.ts';

const HELP = `Usage: npm run simulate -- [--seed N [--trace]] [--schedules M | --seconds S]

Runs writers, with kafkajs and all of their own code, on a simulated Kafka, a simulated ClickHouse and a virtual clock.
Each schedule follows from its seed: what is sent, how long everything takes, and what goes wrong when. Processes are
killed and frozen, responses lost, partitions moved, logs cut off. At each moment and in the end, what is stored is
compared with what was sent.

Tries one seed after the other. The first schedule that fails is shortened and printed.

  --seed N       begin with this seed, a whole number (default: random, and printed). Without --schedules and --seconds,
                 only its schedule is run, and its digest printed: each run of a seed prints the same
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
  const isSingle = values.seed !== undefined && values.schedules === undefined && values.seconds === undefined;
  if (values.trace && !isSingle) throw new ArgumentsError('--trace goes with --seed alone.');
  if (values.schedules !== undefined && values.seconds !== undefined) {
    throw new ArgumentsError('--schedules and --seconds do not go together.');
  }
  const first = Math.floor(Math.random() * 1_000_000_000);
  const seed = wholeNumber('--seed', values.seed ?? String(first), 0, Number.MAX_SAFE_INTEGER);
  const schedules = wholeNumber('--schedules', values.schedules ?? '10000000', 1, 10_000_000);
  const seconds =
    values.schedules === undefined ? wholeNumber('--seconds', values.seconds ?? '60', 1, 86_400) : Infinity;
  return isSingle ? await runSeed(seed, values.trace ?? false) : await trySeeds(seed, { schedules, seconds });
}

function wholeNumber(name: string, text: string, least: number, most: number): number {
  const number = Number(text);
  if (text.trim() !== '' && Number.isSafeInteger(number) && number >= least && number <= most) return number;
  throw new ArgumentsError(`${name} must be a whole number from ${least} to ${most}, not "${text}".`);
}

async function runSeed(seed: number, isTraced: boolean): Promise<number> {
  const outcome = await runSchedule(seed, undefined, isTraced ? (line) => console.log(line) : undefined);
  const { faults, happened, virtualMs, digest } = outcome;
  const minutes = (virtualMs / 60_000).toFixed(1);
  console.log(`seed ${seed}: ${faults.length} faults, ${happened} steps, ${minutes} virtual minutes, digest ${digest}`);
  if (outcome.violation === undefined) return 0;
  await explain(seed, outcome);
  return 1;
}

async function trySeeds(
  first: number,
  most: { readonly schedules: number; readonly seconds: number },
): Promise<number> {
  const startedAt = nowMs();
  const passed = () => (nowMs() - startedAt) / 1_000;
  const sums = { schedules: 0, faults: 0, steps: 0 };
  const report = () => {
    const { schedules, faults, steps } = sums;
    const rate = (count: number) => (count / passed()).toFixed(1);
    console.log(
      `${schedules} schedules (${rate(schedules)} a second), ${faults} faults (${rate(faults)} a second), ` +
        `${steps} steps (${rate(steps)} a second), seeds ${first} to ${first + schedules - 1}`,
    );
  };
  let reportedAt = nowMs();
  for (let seed = first; passed() < most.seconds && sums.schedules < most.schedules; seed += 1) {
    const outcome = await runSchedule(seed);
    sums.schedules += 1;
    sums.faults += outcome.faults.length;
    sums.steps += outcome.happened;
    if (outcome.violation !== undefined) {
      report();
      await explain(seed, outcome);
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
async function explain(seed: number, failing: Outcome): Promise<void> {
  console.log(`\nWRONG: ${failing.violation}\nLooking for a shorter schedule than ${failing.faults.length} faults …`);
  const shortest = await shrink(seed, failing);
  const steps: string[] = [];
  await runSchedule(seed, shortest.faults, (line) => steps.push(line));
  console.log(`\nThe shortest one has ${shortest.faults.length} faults:\n${steps.join('\n')}\n`);
  console.log(`WRONG: ${shortest.violation}`);
  console.log(`Run it again with: npm run simulate -- --seed ${seed} --trace`);
}
