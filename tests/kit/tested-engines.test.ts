import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RELEASES_TESTED } from '@sluice/cli/doctor/broker-release';
import { CLICKHOUSE_VERSION_TESTED } from '@sluice/cli/doctor/clickhouse-checks';
import { expect, test } from 'vitest';
import { TESTED_CLICKHOUSES, TESTED_KAFKAS } from './tested-engines.ts';

const PAGE = join(import.meta.dirname, '../../docs/operate/engines.md');

/** The engines of a section of the page whose state is "tested". */
async function testedRows(section: string): Promise<readonly string[]> {
  const sections = (await readFile(PAGE, 'utf8')).split(/^## /m);
  const text = sections.find((one) => one.startsWith(`${section}\n`)) ?? '';
  return [...text.matchAll(/^\| ([^|]+?) +\| tested +\|/gm)].map(([, name = '']) => name);
}

const namesOf = (engines: Readonly<Record<string, { readonly name: string }>>) =>
  Object.values(engines).map(({ name }) => name);

test('the page of engines says "tested" of those that tests start, and of no others', async () => {
  expect(await testedRows('Kafka')).toEqual(namesOf(TESTED_KAFKAS));
  expect(await testedRows('ClickHouse')).toEqual(namesOf(TESTED_CLICKHOUSES));
});

test('their names are those of their versions, and of what doctor compares with', () => {
  const { newest, older } = TESTED_KAFKAS;
  for (const { name, version } of [newest, older])
    expect(`${name}.`).toBe(`Apache Kafka ${version}`.replace(/\d+$/, ''));
  expect([older, newest].map(({ name }) => name)).toEqual(RELEASES_TESTED.map((release) => `Apache Kafka ${release}`));
  for (const { name } of Object.values(TESTED_CLICKHOUSES)) {
    expect(name).toMatch(new RegExp(`, ${CLICKHOUSE_VERSION_TESTED.join('.')}$`));
  }
});
