// npm run chaos: the whole system under load while its processes are killed, stopped and frozen at random, and a tally
// of what became of every event. `npm run chaos -- --help` tells more.
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { ArgumentsError, parseArguments, runCommand } from '@sluice/shared/config/command-line';
import { type ChaosOutcome, runChaos } from '../tests/kit/chaos/chaos.ts';
import type { Receipt } from '../tests/kit/chaos/receivers.ts';
import { FAULT_KINDS, type FaultKind, isOneServer } from '../tests/kit/chaos/schedule.ts';
import { faultsOf, NO_FAULTS } from '../tests/kit/verify-delivery.ts';
import { removeAbandoned } from './temporary-folders.ts';

/** A range has at least one of six partitions. More mirrors show no more. */
const SHARDS_MAX = 6;
const MIRRORS_MAX = 4;

const HELP = `Usage: npm run chaos -- [--seed N] [--minutes M] [--without KINDS] [--mirrors M] [--shards S]

Starts three Kafka brokers, ClickHouse, two ingest-apis, three writers and two query-apis, and submits events,
properties and deletions. Meanwhile it kills, stops and freezes processes, loses and delays responses, changes the
profile of ClickHouse's account, and cuts off Kafka's logs, at random. At the end it compares the responses with what is
stored and served. Only events that Kafka lost with a log before they were stored may be missing. Two webhooks get the
events, one in batches, one event by event; their receivers refuse, break off, hang, answer slowly and go away. Each event
has to come at least once; those that come again are counted. An audit has to find everything in its place, each event where what
its client was told and what is visible allow it.

  --seed N         a whole number; the same seed gives the same faults at the same times (default: random, and printed)
  --minutes M      how long faults happen, 0.2 to 600 (default 5)
  --without KINDS  no faults of these kinds, separated by commas; all others happen as they would with them:
                   ${FAULT_KINDS.join(', ')}
  --mirrors M      how many ClickHouse servers store the same, 1 to ${MIRRORS_MAX} (default 1)
  --shards S       how many ranges the partitions are divided into, 1 to ${SHARDS_MAX} (default 1)
  --help           this text

With more than one ClickHouse server, each has writers of its own. Servers are killed, stopped, frozen, and lose their
disks, one of each range at a time: a wiped one is filled by "servers copy", which may be broken off. All the time a
dashboard is read. With mirrors none of its requests may fail, and at the end mirrors have to be equal row by row. Each server is
audited alone.
Neither query-apis nor logs are disturbed then, and no responses of ClickHouse, and there are no webhooks.

Exit codes: 0 all is well; 1 something was lost, missing at a webhook, doubled, invented, wrong, refused or became a dead letter, an audit did
not balance, a request of the dashboard failed, or mirrors differ (the folder with the logs is printed); 2 the arguments are wrong.`;

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
      mirrors: { type: 'string' },
      shards: { type: 'string' },
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
  const topology = {
    mirrors: parseCount('--mirrors', values.mirrors, MIRRORS_MAX),
    shards: parseCount('--shards', values.shards, SHARDS_MAX),
  };
  const without = parseKinds(values.without);
  await removeAbandoned(folder, 'data-');
  process.env['TMPDIR'] = join(folder, `data-${process.pid}`);
  await mkdir(process.env['TMPDIR'], { recursive: true });
  const ofServers = isOneServer(topology) ? '' : ` --mirrors ${topology.mirrors} --shards ${topology.shards}`;
  console.log(`Chaos with --seed ${seed} --minutes ${minutes}${ofServers}`);
  const onProgress = (line: string) => console.log(line);
  const outcome = await runChaos({ seed, minutes, without, topology, onProgress });
  printTally(outcome);
  await rm(process.env['TMPDIR'], { recursive: true, force: true });
  const { failed, different } = outcome.ofServers ?? { failed: [], different: [] };
  const areReceived = outcome.receipts.every(({ missing, wrong }) => missing.length === 0 && wrong.length === 0);
  const isDelivered = areReceived && isDeepStrictEqual(faultsOf(outcome.delivery), NO_FAULTS);
  const isBalanced = outcome.unbalanced.length === 0;
  if (isDelivered && isBalanced && failed.length === 0 && different.length === 0) return 0;
  console.log(`Logs are in ${await keepLogs(seed, outcome.logs)}`);
  return 1;
}

function parseCount(option: string, text: string | undefined, max: number): number {
  const count = Number(text ?? 1);
  if (Number.isSafeInteger(count) && count >= 1 && count <= max) return count;
  throw new ArgumentsError(`${option} must be a whole number from 1 to ${max}, not "${text}".`);
}

function parseKinds(text: string | undefined): readonly FaultKind[] {
  const names = text === undefined ? [] : text.split(',').map((name) => name.trim());
  const unknown = names.filter((name) => !FAULT_KINDS.some((kind) => kind === name));
  if (unknown.length === 0) return FAULT_KINDS.filter((kind) => names.includes(kind));
  throw new ArgumentsError(`--without does not know "${unknown.join('", "')}"; use some of ${FAULT_KINDS.join(', ')}.`);
}

function printTally({ delivery, faults, pages, cutOff, receipts, unbalanced, ofServers }: ChaosOutcome): void {
  const { accepted, unknown, required, visible, entities, lost, doubled, invented, wrong, deadLetters, refused } =
    delivery;
  console.log(`
faults                 ${faults.length}
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
dead letters           ${deadLetters}
not balanced           ${unbalanced.length}`);
  for (const receipt of receipts) printReceipt(receipt);
  if (ofServers) printServers(ofServers, faults);
  const failed = ofServers?.failed.map(({ at, path, status, text }) => `${at} ${path} got ${status}: ${text}`) ?? [];
  const different = ofServers?.different ?? [];
  for (const [name, faulty] of Object.entries({
    lost,
    doubled,
    invented,
    wrong,
    refused,
    unbalanced,
    failed,
    different,
  })) {
    for (const fault of faulty.slice(0, NAMED_MAX)) console.log(`${name}: ${fault}`);
  }
}

function printReceipt({ name, required, requests, treatments, copies, missing, wrong }: Receipt): void {
  console.log(`webhook of ${name}
  must come            ${required} events
  requests             ${requests}, ${describe(new Map(Object.entries(treatments)))}
  copies               ${copies}
  missing              ${missing.length}
  wrong                ${wrong.length}`);
  for (const key of missing.slice(0, NAMED_MAX)) console.log(`missing at the webhook of ${name}: ${key}`);
  for (const fault of wrong.slice(0, NAMED_MAX)) console.log(`wrong at the webhook of ${name}: ${fault}`);
}

function printServers(
  { deletions, answered, failed, slowestMs, equalRows, different }: NonNullable<ChaosOutcome['ofServers']>,
  faults: ChaosOutcome['faults'],
): void {
  const counts = countEach(faults.map(({ kind, target }) => `${kind} ${target.split(' ')[0]}`));
  const statuses = countEach(failed.map(({ status }) => `${status ?? 'no response'}`)).set('200', answered);
  console.log(`deletions of users     ${deletions}
faults by kind         ${describe(counts)}
requests by status     ${describe(statuses)}
slowest request        ${(slowestMs / 1_000).toFixed(1)} s
rows equal on mirrors  ${equalRows}
rows that differ       ${different.length}`);
}

function countEach(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

function describe(counts: ReadonlyMap<string, number>): string {
  return [...counts]
    .toSorted()
    .map(([name, count]) => `${name}: ${count}`)
    .join(', ');
}

async function keepLogs(seed: number, logs: ReadonlyMap<string, string>): Promise<string> {
  const logFolder = join(folder, `logs-${seed}`);
  await mkdir(logFolder, { recursive: true });
  for (const [name, log] of logs) await writeFile(join(logFolder, `${name.replaceAll(' ', '-')}.log`), log);
  return logFolder;
}
