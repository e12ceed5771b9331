import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { programFile, THIS_CHECKOUT } from '@sluice/shared/testing/program-file';
import { expect, inject, test } from 'vitest';
import { type Load, startLoad } from '../kit/load.ts';
import { checkOutVersion, ONE_ACCOUNT } from '../kit/other-version.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import { startReaders, untilBothGoOn } from '../kit/readers.ts';
import type { Service, ServiceName } from '../kit/service.ts';
import { expectExactlyOnce } from '../kit/verify-delivery.ts';

const clickhouseUrl = inject('clickhouseUrl');

/** The last commit of the version before this one. */
const VERSION_BEFORE = 'c59d9176c09a86c968a6d985ed209cab093e4d6f';

const versionBefore = await checkOutVersion(process.env['SLUICE_UPGRADE_FROM'] || VERSION_BEFORE);

test('each service is upgraded and downgraded, one process after the other, under load: nothing is lost or refused', async () => {
  await using running = await startPipeline({
    ...{ kafkaBrokers: inject('kafkaBrokers'), clickhouseUrl, name: 'upgraded', checkout: versionBefore },
    envOf: ONE_ACCOUNT,
  });
  const writers = await twoOf(running, 'writer');
  const ingests = await twoOf(running, 'ingest-api');
  const queries = await twoOf(running, 'query-api');
  await running.submit({ foreignUserGroupId: 'g', foreignUserId: 'u0', events: [{ event: 'first' }] });
  await running.settled(1);
  await using load = startLoad({ pipeline: running, urls: ingests.urls, concurrency: 8, setsOnce: false });
  await using readers = startReaders({ pipeline: running, urls: queries.urls, paths: PATHS });
  const goesOn = () => untilBothGoOn(load, readers, { accepted: 200, answered: 20 });

  await goesOn();
  const { stdout } = await migrate(running);
  expect(stdout).toContain('no migration is missing');
  await goesOn();
  for (const instances of [writers, ingests, queries]) await instances.replaceEach(THIS_CHECKOUT, goesOn);
  for (const instances of [queries, ingests, writers]) await instances.replaceEach(versionBefore, goesOn);

  expect(await readers.stop()).toEqual([]);
  const tally = await load.stop();
  await expectExactlyOnce(running, clickhouseUrl, tally);
  expect(tally.operations.filter(({ clear }) => !clear)).toEqual([]);
  console.log(report(tally.operations.length, load, readers.answeredSoFar()));
});

/** How long a process still serves after it gets no more requests, as a preStop hook lets it, in milliseconds. */
const PRE_STOP_MS = 2_000;

/** Two processes of a service behind a load balancer. */
interface Instances {
  /** The addresses of those that get requests. */
  readonly urls: () => readonly string[];
  /** Replaces one after the other: it gets no more requests, ends, and the new one gets them once it is ready. */
  replaceEach(checkout: string, meanwhile: () => Promise<void>): Promise<void>;
}

async function twoOf(running: Pipeline, name: ServiceName): Promise<Instances> {
  const instances = [running.services[name], await running.startAnother(name)];
  const away = new Set<Service>();
  return {
    urls: () => instances.filter((instance) => !away.has(instance)).map(({ url }) => url),
    async replaceEach(checkout, meanwhile) {
      for (const [index, ended] of instances.entries()) {
        away.add(ended);
        await delay(PRE_STOP_MS);
        expect(await ended.stop(), ended.log().slice(-2_000)).toBe(0);
        instances[index] = await running.replace(ended, checkout);
        await meanwhile();
      }
    },
  };
}

/** Applies the migrations of this version, as the document on upgrades says. */
async function migrate({ environment }: Pipeline): Promise<{ stdout: string }> {
  const main = programFile('sluice');
  return await promisify(execFile)(process.execPath, [main, 'migrations', 'apply', '--wait'], { env: environment });
}

const PATHS = [
  '/events?limit=20',
  '/events?event=load&limit=5&total=exact',
  '/users/u0',
  '/organizations/g',
  '/users?limit=5',
  '/events/names',
];

function report(requests: number, load: Load, answered: number): string {
  return `${requests} requests were accepted at once with ${load.acceptedSoFar()} events, and ${answered} queries answered`;
}
