import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CLIENTS } from '../kit/clients/clients.ts';
import { POSTHOG_CLIENTS } from '../kit/clients/posthog/clients.ts';

/** The packages of clients of which requests were recorded by hand. */
const RECORDED: Readonly<Record<string, string>> = {
  'segment-php': 'segmentio/analytics-php',
  'rudder-php': 'rudderstack/rudder-php-sdk',
  'posthog-php': 'posthog/posthog-php',
  'segment-ruby': 'analytics-ruby',
  'rudder-ruby': 'rudder-sdk-ruby',
  'posthog-ruby': 'posthog-ruby',
};

const PACKAGES = join(import.meta.dirname, '..', 'kit', 'clients', 'packages');

/** Returns the packages that the tests install for themselves, and those of {@link RECORDED}, as `name version`. */
async function testedClients(): Promise<string[]> {
  const { dependencies } = JSON.parse(await readFile(join(PACKAGES, 'package.json'), 'utf8'));
  const fromNpm = Object.entries<string>(dependencies).map(([name, spec]) => {
    const [, aliased = name, version = spec] = /^npm:(.+)@(.+)$/.exec(spec) ?? [];
    return `${aliased} ${version}`;
  });
  // A driver of ClickHouse reads, and sends no events.
  const files = (await readdir(PACKAGES)).filter((file) => /^python-(?!clickhouse-)/.test(file));
  const fromPyPi = files.map(async (file) => {
    const [, vendor, version] = /^python-(.+)-(.+)\.txt$/.exec(file) ?? [];
    const lines = (await readFile(join(PACKAGES, file), 'utf8')).split('\n');
    const client = lines.find((line) => line.startsWith(String(vendor)) && line.endsWith(`==${version}`));
    return `${client?.replace('==', ' ')}`;
  });
  const recorded = [...CLIENTS, ...POSTHOG_CLIENTS].flatMap(({ name }) => {
    const [, client = '', version] = /^(\w+-(?:php|ruby))-([\d.]+)$/.exec(name) ?? [];
    return version === undefined ? [] : [`${RECORDED[client]} ${version}`];
  });
  return [...fromNpm, ...(await Promise.all(fromPyPi)), ...recorded].sort();
}

test('docs/guide/producers.md names each client that is tested, with its version', async () => {
  const text = await readFile(join(import.meta.dirname, '..', '..', 'docs', 'guide', 'producers.md'), 'utf8');
  const rows = [...text.matchAll(/^\| `([^`]+)` +\| ([\d., ]+\d) +\|/gm)];
  const named = rows.flatMap(([, name, versions = '']) => versions.split(', ').map((version) => `${name} ${version}`));
  expect(named.sort()).toEqual(await testedClients());
});

test('the requests of each client are recorded', async () => {
  const folders = await readdir(join(import.meta.dirname, '..', 'kit', 'clients', 'recorded'));
  expect(folders.sort()).toEqual([...CLIENTS, ...POSTHOG_CLIENTS].map(({ name }) => name).sort());
});
