import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, onTestFinished, test } from 'vitest';
import { startMirrors, valuesByServer } from '../../testing/mirrors.ts';

test('a server that is silent cannot be read, whether another one answers or not', async () => {
  const mirrors = await startMirrors(inject('clickhouseUrl'), ['a1', 'a2']);
  onTestFinished(() => mirrors.stop());
  mirrors.a1.behaviour = 'is silent';
  await eventually(() => valuesByServer(mirrors, 'sluice_query_server_readable')).toEqual({ a1: 0, a2: 1 });
  mirrors.a2.behaviour = 'is silent';
  await eventually(() => valuesByServer(mirrors, 'sluice_query_server_readable')).toEqual({ a1: 0, a2: 0 });
  expect(await valuesByServer(mirrors, 'sluice_query_server_behind_seconds')).toEqual({});
});
