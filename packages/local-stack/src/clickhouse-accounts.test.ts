import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { ACCOUNTS, parseAccounts } from './clickhouse-accounts.ts';

const script = await readFile(new URL('../../../deploy/clickhouse/accounts.sql', import.meta.url), 'utf8');

test('every account and every right of the script is in the form for users.xml', () => {
  const { accounts, profiles } = parseAccounts(script, 'test_*');
  expect([...accounts.keys()]).toEqual(ACCOUNTS);
  const rights = [...accounts].flatMap(([account, { grants }]) => grants.map((grant) => `${grant} TO ${account};`));
  const lines = script.match(/^GRANT .*$/gm)?.map((line) => line.replace(/ ON (webhook|console)?\* /, ' ON test_*.* '));
  expect(rights.sort()).toEqual(lines?.sort());
  expect(accounts.get('sluice_query')?.profile).toBe('sluice_query');
  const limit = { value: '1073741824', min: '1', max: '17179869184', isFixed: false };
  expect(profiles.get('sluice_query')?.get('max_memory_usage')).toEqual(limit);
  expect(profiles.get('sluice_query')?.get('allow_ddl')?.isFixed).toBe(true);
});

test('in one database a right for some tables is for these alone', () => {
  const { accounts } = parseAccounts(script, 'sluice');
  expect(accounts.get('sluice_webhooks')?.grants).toEqual([
    'GRANT SELECT, INSERT, ALTER DELETE ON sluice.webhook*',
    'GRANT SELECT, INSERT, ALTER DELETE ON sluice.console*',
  ]);
  expect(accounts.get('sluice_query')?.grants).toEqual([
    'GRANT SELECT ON sluice.*',
    'GRANT SELECT ON system.replicas',
    'REVOKE SELECT ON sluice.webhooks',
  ]);
});

test.each([
  'CREATE ROW POLICY p ON events USING 1 TO sluice_query',
  'CREATE USER IF NOT EXISTS sluice_query IDENTIFIED WITH sha256_hash BY {p:String} HOST LOCAL',
  'CREATE SETTINGS PROFILE IF NOT EXISTS sluice_query SETTINGS max_threads = 1 CONST',
  'GRANT SELECT ON * TO somebody',
])('a statement without such a form is an error: %s', (statement) => {
  expect(() => parseAccounts(`${script}\n${statement};`, 'test_*')).toThrow(/accounts\.sql/);
});
