// npm run hostile: one tenant at every limit of the API, beside another one. `npm run hostile -- --help` tells more.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ArgumentsError, parseArguments, runCommand } from '@sluice/shared/config/command-line';
import { buildConsole } from '../packages/console/scripts/build.ts';
import { ownKafka } from '../tests/kit/engines.ts';
import { Arena } from '../tests/kit/hostile/arena.ts';
import { withLimits } from '../tests/kit/hostile/limits-document.ts';
import { describeProduct, productsOf, SINGLES, singlesOf } from '../tests/kit/hostile/product.ts';
import { type Failure, runSeed, shrink } from '../tests/kit/hostile/search.ts';
import { seededRandom } from '../tests/kit/random.ts';

const HELP = `Usage: npm run hostile -- [--seed N] [--seconds S]
       npm run hostile -- --write-limits

Starts Kafka, ClickHouse and the services, each with the memory of its container. One tenant sends requests that stand at
the limits of the API: at a limit, one under and one over, by itself and in products of two and three, at every route of
the OpenAPI documents, with identifiers, names and values that are expensive to compare, sort, escape and print. Its
webhooks deliver to receivers that are slow, silent, endless, redirect or have no address. Another tenant sends ordinary
requests. In each round this is judged:

  the first tenant gets what it should: an error that names the fault beyond a limit, and no 5xx but 503 with Retry-After
  the second tenant gets its own data and nothing else; 99% of its requests take at most 200 ms, or 3 times as long as on a
    busy machine without the first tenant; an event of its stream takes at most 2 s
  no event loop is blocked for more than 100 ms, besides the time for which it had no processor
  each process stays within the memory of its container, and is idle again after the round: nothing waits for a thread, no
    more connections and timers than pools keep, no lock file, and no query runs on whose request was answered

The requests of each round follow from its seed. A round that is too slow is run twice more before it counts, and does not
count while other processes use more than a fifth of the machine.

  --seed N         the first seed, a whole number (default: random, and printed). Without --seconds only this round is run
  --seconds S      how long rounds are run, one seed after the other, 1 to 86400 (default 300)
  --write-limits   write the table of limits into docs/guide/api.md, and end
  --help           this text

Exit codes: 0 all is well; 1 something was wrong; 2 the arguments are wrong.`;

const EXIT_CODE_INTERRUPTED = 130;
const PROGRESS_MS = 10_000;

/** So little that queries of the hostile tenant fail, as those do that read years; enough for the ordinary tenant. */
const QUERY_BYTES_READ_MAX = String(12 * 1_024 * 1_024);

const root = join(import.meta.dirname, '..');

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => process.exit(EXIT_CODE_INTERRUPTED));

process.exit(await runCommand('npm run hostile --', main));

async function main(): Promise<number> {
  const { values } = parseArguments({
    args: process.argv.slice(2),
    options: {
      seed: { type: 'string' },
      seconds: { type: 'string' },
      'write-limits': { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  if (values['write-limits']) return await writeLimits();
  const first = wholeNumber('--seed', values.seed ?? String(Math.floor(Math.random() * 1_000_000_000)), 0);
  const isSingle = values.seed !== undefined && values.seconds === undefined;
  const seconds = isSingle ? 0 : wholeNumber('--seconds', values.seconds ?? '300', 1, 86_400);
  console.log(`Hostile requests from --seed ${first}${isSingle ? '' : ` for ${seconds} s`}: starting the system …`);
  await buildConsole();
  await using kafka = await ownKafka({ onProgress: (line) => console.log(line) });
  await using arena = await Arena.start({
    kafkaBrokers: kafka.brokers,
    name: 'hostile',
    env: { QUERY_BYTES_READ_MAX },
  });
  return await trySeeds(arena, first, seconds);
}

async function writeLimits(): Promise<number> {
  const path = join(root, 'docs', 'guide', 'api.md');
  await writeFile(path, withLimits(await readFile(path, 'utf8')));
  return 0;
}

function wholeNumber(name: string, text: string, least: number, most = 1_000_000_000): number {
  const number = Number(text);
  if (text.trim() !== '' && Number.isSafeInteger(number) && number >= least && number <= most) return number;
  throw new ArgumentsError(`${name} must be a whole number from ${least} to ${most}, not "${text}".`);
}

/** Runs the round of the first seed, and then of those that follow it until the time is over. */
async function trySeeds(arena: Arena, first: number, seconds: number): Promise<number> {
  const startedAt = performance.now();
  const isOver = () => performance.now() - startedAt >= 1_000 * seconds;
  const sums = { rounds: 0, responses: 0, unavailable: 0, late: 0, unjudged: 0 };
  const report = () => {
    const { rounds, responses, unavailable, late, unjudged } = sums;
    const singles = Math.min(rounds * singlesOf(first).length, SINGLES.length);
    console.log(
      `${((performance.now() - startedAt) / 1_000).toFixed(0)} s: ${rounds} rounds (seeds ${first} to ${first + rounds - 1}), ` +
        `${responses} responses, of which ${unavailable} were 503, ${singles} of ${SINGLES.length} single corners, ${late} rounds once too slow, ${unjudged} while others used the machine`,
    );
  };
  let reportedAt = startedAt;
  for (let seed = first; seed === first || !isOver(); seed += 1) {
    const { failure, late, unjudged, responses, unavailable } = await runSeed(arena, seed);
    sums.rounds += 1;
    sums.responses += responses;
    sums.unavailable += unavailable;
    sums.late += late.length > 0 ? 1 : 0;
    sums.unjudged += unjudged.length > 0 ? 1 : 0;
    for (const text of late) console.log(`seed ${seed}, once too slow: ${text}`);
    if (failure) return await explain(arena, seed, failure);
    if (performance.now() - reportedAt < PROGRESS_MS) continue;
    reportedAt = performance.now();
    report();
  }
  report();
  const leaks = await arena.leaks();
  for (const leak of leaks) console.log(`WRONG: ${leak}`);
  if (leaks.length === 0) console.log('Every tenant got what it should.');
  return leaks.length === 0 ? 0 : 1;
}

async function explain(arena: Arena, seed: number, failure: Failure): Promise<number> {
  console.log(`\nseed ${seed} is WRONG:\n  ${failure.faults.join('\n  ')}\nIts requests:`);
  for (const product of productsOf(seed, seededRandom(seed))) console.log(`  ${describeProduct(product)}`);
  console.log('Looking for fewer of them …');
  const shortest = await shrink(arena, failure);
  console.log(`\nStill wrong with ${shortest.products.length}:`);
  for (const product of shortest.products) console.log(`  ${describeProduct(product)}`);
  for (const fault of shortest.faults) console.log(`WRONG: ${fault}`);
  console.log(`Run it again with: npm run hostile -- --seed ${seed}`);
  return 1;
}
