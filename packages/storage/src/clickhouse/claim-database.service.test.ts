import { createLogger } from '@sluice/shared/base/log';
import { migrate, readMigrations } from '@sluice/shared/clickhouse/migrate';
import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { createTestClients, type TestClients } from '../testing/clients.ts';
import { claimDatabase, GroupMismatch, refuseOtherGroups } from './claim-database.ts';

let db: TestClients;

beforeEach(async () => {
  db = await createTestClients(inject('clickhouseUrl'), createDatabase);
});
afterEach(() => db.close());

test('the first writer records its group, and a writer of another group is refused by name', async () => {
  const { client } = db;
  await refuseOtherGroups(client, 'second');
  await claimDatabase(client, 'first');
  await claimDatabase(client, 'first');
  const claim = claimDatabase(client, 'second');
  await expect(claim).rejects.toThrow(GroupMismatch);
  await expect(claim).rejects.toThrow(
    /belongs to the consumer group first, and KAFKA_GROUP_ID is second: set it to first/,
  );
  await expect(refuseOtherGroups(client, 'second')).rejects.toThrow(GroupMismatch);
  await claimDatabase(client, 'first');
  // As docs/operate/configuration.md says.
  await client.command({ query: 'TRUNCATE TABLE writer_groups' });
  await claimDatabase(client, 'second');
  await expect(claimDatabase(client, 'first')).rejects.toThrow(GroupMismatch);
});

test('writers of two groups that start together do not both store', async () => {
  const claimBoth = () => Promise.allSettled(['a', 'b'].map((group) => claimDatabase(db.writerClient, group)));
  for (const outcomes of [await claimBoth(), await claimBoth()]) {
    expect(outcomes.filter(({ status }) => status === 'fulfilled').length).toBeLessThan(2);
  }
});

test('a database that was filled before groups were recorded belongs to the group whose writers filled it', async () => {
  const all = await readMigrations();
  const before = all.slice(
    0,
    all.findIndex(({ name }) => name.includes('writer-groups')),
  );
  const CLICKHOUSE_DATABASE = await nameOfDatabase();
  await db.client.command({ query: `DROP DATABASE ${CLICKHOUSE_DATABASE} SYNC` });
  const config = {
    CLICKHOUSE_URL: inject('clickhouseUrl'),
    CLICKHOUSE_DATABASE,
    CLICKHOUSE_USER: 'default',
    CLICKHOUSE_PASSWORD: '',
  };
  const logger = createLogger('test', 'silent');
  await migrate(config, logger, before);
  const record = "INSERT INTO writer_epochs (group_id, incarnation, generation) VALUES ('old', 1, 1), ('old', 1, 2)";
  await db.client.command({ query: record });
  await migrate(config, logger, all);
  await expect(claimDatabase(db.writerClient, 'new')).rejects.toThrow(/belongs to the consumer group old/);
  await claimDatabase(db.writerClient, 'old');
  await db.client.command({ query: "INSERT INTO writer_groups (group_id) VALUES ('other')" });
  await expect(claimDatabase(db.writerClient, 'old')).rejects.toThrow(/several consumer groups .*\(old, other\)/);
});

async function nameOfDatabase(): Promise<string> {
  return (await db.read<{ name: string }>('SELECT currentDatabase() AS name'))[0]?.name ?? '';
}
