import { readFile } from 'node:fs/promises';
import { type Account, readAccounts, statementsOf } from '@sluice/local-stack/clickhouse-accounts';
import { expect, test } from 'vitest';
import { RIGHTS, type Role, rightsOf, SHARED_RIGHTS } from './clickhouse-accounts.ts';

/** What only commands need that not everybody runs. */
const OF_COMMANDS = ['BACKUP ON sluice.*', 'SELECT ON system.backups', 'READ ON REMOTE'];

const ROLES: readonly [Role, Account, tables: readonly string[]][] = [
  ['migrate', 'sluice_migrate', ['*']],
  ['writer', 'sluice_writer', ['*']],
  ['query', 'sluice_query', ['*']],
  ['webhooks', 'sluice_webhooks', ['webhook*', 'console*']],
];

test.each(ROLES)('doctor looks for the rights that accounts.sql gives: %s', async (role, account, tables) => {
  const { accounts } = await readAccounts('sluice');
  const given = (accounts.get(account)?.grants ?? [])
    .filter((grant) => grant.startsWith('GRANT '))
    .flatMap((grant) => {
      const [, rights = '', on = ''] = /^GRANT (.+) ON (\S+)$/.exec(grant) ?? [];
      return rights.split(', ').map((right) => `${right} ON ${on}`);
    });
  const { database, server } = RIGHTS[role];
  const wanted = [...database.flatMap((right) => tables.map((table) => `${right} ON sluice.${table}`)), ...server];
  expect(given.filter((right) => !OF_COMMANDS.includes(right)).toSorted()).toEqual(wanted.toSorted());
});

const SLUICE = { CLICKHOUSE_DATABASE: 'sluice' };

test('only replicas need what they agree by', async () => {
  const REPLICATED = { ...SLUICE, CLICKHOUSE_REPLICATION: 'replicated' } as const;
  for (const right of ['SYSTEM SYNC REPLICA ON sluice.events', 'SELECT ON system.replicas']) {
    expect(await rightsOf('writer', SLUICE)).not.toContain(right);
    expect(await rightsOf('writer', REPLICATED)).toContain(right);
  }
  expect(await rightsOf('migrate', SLUICE)).not.toContain('TABLE ENGINE ON ReplicatedMergeTree');
  expect(await rightsOf('migrate', REPLICATED)).toContain('TABLE ENGINE ON ReplicatedMergeTree');
});

test('where replicas share the rows, doctor looks for what shared.sql gives, and not for temporary tables', async () => {
  const script = new URL('../../../../deploy/clickhouse/shared.sql', import.meta.url);
  const given = statementsOf(await readFile(script, 'utf8'));
  const wanted = ROLES.flatMap(([role, account]) => SHARED_RIGHTS[role].map((right) => `GRANT ${right} TO ${account}`));
  expect(given.toSorted()).toEqual(wanted.toSorted());
  const shared = await rightsOf('writer', { ...SLUICE, CLICKHOUSE_REPLICATION: 'shared' });
  expect(shared).toContain('CLUSTER ON *.*');
  expect(shared).toContain('INSERT ON sluice.events');
  for (const right of ['CREATE TEMPORARY TABLE ON *.*', 'SYSTEM SYNC REPLICA ON sluice.events']) {
    expect(shared).not.toContain(right);
  }
});

test('no account is asked for the secrets of webhooks but the two that have them', async () => {
  for (const role of ['writer', 'query'] as const) {
    expect(await rightsOf(role, SLUICE)).not.toContain('SELECT ON sluice.webhooks');
    expect(await rightsOf(role, SLUICE)).toContain('SELECT ON sluice.events');
  }
  expect(await rightsOf('webhooks', SLUICE)).toContain('INSERT ON sluice.webhooks');
});
