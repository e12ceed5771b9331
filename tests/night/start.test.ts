import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, test } from 'vitest';
import {
  commandsOf,
  paste,
  sluice,
  startEnvironment,
  startReady,
  startUntil,
  usersBySql,
} from '../kit/start-command.ts';

test('what npm start has stored survives a stop, a lost ClickHouse by its backup, and ends with the process that is killed', async () => {
  await using dir = await makeTempDir();
  const { env, usedPorts } = await startEnvironment(dir.path);
  const stop = async ({ process, exited }: Awaited<ReturnType<typeof startReady>>) => {
    process.kill('SIGINT');
    expect(await exited).toEqual([0, null]);
  };

  const first = await startReady(env);
  const [submit, see] = commandsOf(first);
  expect(await paste(submit)).toMatchObject({ status: 'accepted' });
  await eventually(() => paste(see)).toMatchObject({ total: 1 });
  const backup = join(env.SLUICE_DATA_DIR, 'backups', 'one');
  expect(await sluice(env, 'backup', '--to', backup)).toContain('The backup is complete');
  await stop(first);

  await rm(join(env.SLUICE_DATA_DIR, 'clickhouse'), { recursive: true });
  const engines = await startUntil('Kafka and ClickHouse are ready', env, ['--engines']);
  expect(await sluice(env, 'restore', '--from', backup, '--yes')).toContain('is restored');
  await stop(engines);

  const third = await startReady(env);
  expect(await paste(see)).toMatchObject({ total: 1 });
  expect(await usersBySql(env.QUERY_PORT)).toEqual({ user_id: 'jane' });
  process.kill(Number(await readFile(join(env.SLUICE_DATA_DIR, 'lock'), 'utf8')), 'SIGKILL');
  await third.exited;
  await eventually(usedPorts).toEqual([]);
});
