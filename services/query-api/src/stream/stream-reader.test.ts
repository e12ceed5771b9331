import { once } from 'node:events';
import { sleep } from '@sluice/shared/base/retry';
import { expect, test } from 'vitest';
import type { Row } from '../store/clickhouse-reader.ts';
import { ConnectionFailure } from '../store/read-failures.ts';
import { OneStore } from '../store/stores.ts';
import { LOCAL_TABLES } from '../store/tables.ts';
import { ALL_VISIBLE } from '../testing/all-visible.ts';
import { StreamListener } from './stream-listener.ts';
import { endOfBlock } from './stream-position.ts';
import { StreamReader } from './stream-reader.ts';

const START = new Map([[0, endOfBlock(1)]]);

function rowOf(block: number): Row {
  const time = '2026-03-01 12:00:00.000';
  const uuid = `00000000-0000-4000-8000-00000000000${block}`;
  return [uuid, 'track', 'e', '', '', '', '', '{}', '{}', '{}', time, `${time}000`, 0, block, [0]];
}

function listenerOf(workspace: string): StreamListener {
  const selection = { workspace, fields: [], properties: [] };
  const request = { selection, key: workspace, weight: 1, isAllowed: () => true };
  return new StreamListener(request, { source: { idOf: () => '' }, position: START, throughMs: 0 });
}

test.each([
  ['before its next rows', [[rowOf(2)], [rowOf(3)]]],
  ['before its end', [[rowOf(2)], []]],
])(
  'once a reader is ended %s, its listeners are sent nothing: they may be at another server',
  async (_, [first, second]) => {
    const ended = new AbortController();
    const reader = new StreamReader({
      queryRunner: {
        rows: async function* () {
          yield first;
          ended.abort();
          yield second;
        },
      } as never,
      stores: new OneStore({ name: '', reader: undefined as never, tables: LOCAL_TABLES, visibility: ALL_VISIBLE }),
      signal: ended.signal,
      onSent: () => undefined,
    });
    const listener = listenerOf('a');
    let sent = '';
    listener.body.on('data', (chunk) => {
      sent += String(chunk);
    });
    await reader.deliver([listener], { from: START, to: new Map([[0, endOfBlock(9)]]) });
    expect(listener.position.get(0)?.block).toBe(2);
    listener.end('stopping');
    await once(listener.body, 'end');
    expect(sent.match(/^data: /gm)).toHaveLength(1);
  },
);

test('a workspace of which it is not known what may be shown holds up no other one, and its events wait', async () => {
  const known = Promise.withResolvers<undefined>();
  const hiddenCondition = async (workspace: string) => {
    if (workspace === 'failing') throw new ConnectionFailure('lacks deletions');
    return workspace === 'slow' ? await known.promise : undefined;
  };
  const visibility = { ...ALL_VISIBLE, hiddenCondition };
  const reader = new StreamReader({
    queryRunner: {
      rows: async function* () {
        yield [rowOf(2)];
      },
    } as never,
    stores: new OneStore({ name: '', reader: undefined as never, tables: LOCAL_TABLES, visibility }),
    signal: new AbortController().signal,
    onSent: () => undefined,
  });
  const range = { from: START, to: new Map([[0, endOfBlock(9)]]) };
  const [failing, slow, other] = ['failing', 'slow', 'other'].map(listenerOf) as [
    StreamListener,
    StreamListener,
    StreamListener,
  ];
  const blocks = () => [failing, slow, other].map(({ position }) => position.get(0)?.block);
  const unsent = ({ body }: StreamListener) => body.readableLength;
  const before = [failing, slow].map(unsent);
  await reader.deliver([failing, slow, other], range);
  expect(blocks()).toEqual([1, 1, 9]);
  expect([failing, slow].map(unsent)).toEqual(before);
  const behind = listenerOf('other');
  const delivered = reader.deliver([slow, failing, behind], range, true);
  // Longer than others wait.
  await sleep(500);
  known.resolve(undefined);
  await delivered;
  expect([...blocks(), behind.position.get(0)?.block]).toEqual([1, 9, 9, 9]);
});
