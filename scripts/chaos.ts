// npm run chaos: the whole system under load while its processes are killed, stopped and frozen at random, and a tally
// of what became of every event. `npm run chaos -- --help` tells more.
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { ArgumentsError, parseArguments, runCommand } from '@sluice/shared/command-line';
import { type ChaosOutcome, runChaos } from '../tests/chaos/chaos.ts';
import { FAULT_KINDS, type FaultKind } from '../tests/chaos/schedule.ts';
import { type Delivery, faultsOf, NO_FAULTS } from '../tests/support/verify-delivery.ts';
import { removeAbandoned } from './temporary-folders.ts';

const HELP = `Usage: npm run chaos -- [--seed N] [--minutes M] [--without KINDS]

Starts three Kafka brokers, ClickHouse, two ingest-apis, three writers and two query-apis, and submits events,
properties and deletions. Meanwhile it kills, stops and freezes processes, loses and delays responses, changes the
profile of ClickHouse's account, and cuts off Kafka's logs, at random. At the end it compares the responses with what is
stored and served. Only events that Kafka lost with a log before they were stored may be missing.

  --seed N         a whole number; the same seed gives the same faults at the same times (default: random, and printed)
  --minutes M      how long faults happen, 0.2 to 600 (default 5)
  --without KINDS  no faults of these kinds, separated by commas; all others happen as they would with them:
                   ${FAULT_KINDS.join(', ')}
  --help           this text

Exit codes: 0 all is well; 1 something was lost, doubled, invented, wrong, refused or became a dead letter (the folder
with the logs is printed); 2 the arguments are wrong.`;

const NAMED_MAX = 20;
const EXIT_CODE_INTERRUPTED = 130;
const folder = join(import.meta.dirname, '..', '.sluice', 'chaos');

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => process.exit(EXIT_CODE_INTERRUPTED));

process.exit(await runCommand('npm run chaos --', main));

async function main(): Promise<number> {
  const { values } = parseArguments({
    args: process.argv.slice(2),
    options: {
      seed: { type: 'string' },
      minutes: { type: 'string' },
      without: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const seed = Number(values.seed ?? Math.floor(Math.random() * 1_000_000));
  const minutes = Number(values.minutes ?? 5);
  if (!Number.isSafeInteger(seed)) throw new ArgumentsError(`--seed must be a whole number, not "${values.seed}".`);
  if (!(minutes >= 0.2 && minutes <= 600)) {
    throw new ArgumentsError(`--minutes must be from 0.2 to 600, not "${values.minutes}".`);
  }
  const without = parseKinds(values.without);
  await removeAbandoned(folder, 'data-');
  process.env['TMPDIR'] = join(folder, `data-${process.pid}`);
  await mkdir(process.env['TMPDIR'], { recursive: true });
  console.log(`Chaos with --seed ${seed} --minutes ${minutes}`);
  const onProgress = (line: string) => console.log(line);
  const { delivery, faults, pages, cutOff, logs } = await runChaos({ seed, minutes, without, onProgress });
  printTally(delivery, { faults, pages, cutOff });
  await rm(process.env['TMPDIR'], { recursive: true, force: true });
  if (isDeepStrictEqual(faultsOf(delivery), NO_FAULTS)) return 0;
  console.log(`Logs are in ${await keepLogs(seed, logs)}`);
  return 1;
}

function parseKinds(text: string | undefined): readonly FaultKind[] {
  const names = text === undefined ? [] : text.split(',').map((name) => name.trim());
  const unknown = names.filter((name) => !FAULT_KINDS.some((kind) => kind === name));
  if (unknown.length === 0) return FAULT_KINDS.filter((kind) => names.includes(kind));
  throw new ArgumentsError(`--without does not know "${unknown.join('", "')}"; use some of ${FAULT_KINDS.join(', ')}.`);
}

function printTally(
  delivery: Delivery,
  { faults, pages, cutOff }: Pick<ChaosOutcome, 'faults' | 'pages' | 'cutOff'>,
): void {
  const { accepted, unknown, required, visible, entities, lost, doubled, invented, wrong, deadLetters, refused } =
    delivery;
  console.log(`
faults                 ${faults}
accepted               ${accepted} events
of unknown outcome     ${unknown} events
must be visible        ${required} events
visible                ${visible} events
pages read             ${pages}
lost by Kafka itself   ${cutOff} events
compared               ${entities} users and organizations
lost                   ${lost.length}
doubled                ${doubled.length}
invented               ${invented.length}
wrong                  ${wrong.length}
refused                ${refused.length}
dead letters           ${deadLetters}`);
  for (const [name, faulty] of Object.entries({ lost, doubled, invented, wrong, refused })) {
    for (const fault of faulty.slice(0, NAMED_MAX)) console.log(`${name}: ${fault}`);
  }
}

async function keepLogs(seed: number, logs: ReadonlyMap<string, string>): Promise<string> {
  const logFolder = join(folder, `logs-${seed}`);
  await mkdir(logFolder, { recursive: true });
  for (const [name, log] of logs) await writeFile(join(logFolder, `${name.replace(' ', '-')}.log`), log);
  return logFolder;
}
