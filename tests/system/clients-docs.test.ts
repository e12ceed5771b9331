import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CLIENTS } from '../kit/clients/clients.ts';
import { POSTHOG_CLIENTS } from '../kit/clients/posthog/clients.ts';

const PACKAGES = join(import.meta.dirname, '..', 'kit', 'clients', 'packages');

/** Returns the packages that the tests install for themselves, as `name version`. */
async function pinnedClients(): Promise<string[]> {
  const { dependencies } = JSON.parse(await readFile(join(PACKAGES, 'package.json'), 'utf8'));
  const fromNpm = Object.entries<string>(dependencies).map(([name, spec]) => {
    const [, aliased = name, version = spec] = /^npm:(.+)@(.+)$/.exec(spec) ?? [];
    return `${aliased} ${version}`;
  });
  const files = (await readdir(PACKAGES)).filter((file) => file.startsWith('python-'));
  const fromPyPi = files.map(async (file) => {
    const [, vendor, version] = /^python-(.+)-(.+)\.txt$/.exec(file) ?? [];
    const lines = (await readFile(join(PACKAGES, file), 'utf8')).split('\n');
    const client = lines.find((line) => line.startsWith(String(vendor)) && line.endsWith(`==${version}`));
    return `${client?.replace('==', ' ')}`;
  });
  return [...fromNpm, ...(await Promise.all(fromPyPi))].sort();
}

test('docs/guide/producers.md names each client that is tested, with its version', async () => {
  const text = await readFile(join(import.meta.dirname, '..', '..', 'docs', 'guide', 'producers.md'), 'utf8');
  const rows = [...text.matchAll(/^\| `([^`]+)` +\| ([\d., ]+\d) +\|/gm)];
  const named = rows.flatMap(([, name, versions = '']) => versions.split(', ').map((version) => `${name} ${version}`));
  expect(named.sort()).toEqual(await pinnedClients());
});

test('the requests of each client are recorded', async () => {
  const folders = await readdir(join(import.meta.dirname, '..', 'kit', 'clients', 'recorded'));
  expect(folders.sort()).toEqual([...CLIENTS, ...POSTHOG_CLIENTS].map(({ name }) => name).sort());
});
