import { once } from 'node:events';
import { expect, test } from 'vitest';
import type { Row } from '../store/clickhouse-reader.ts';
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
    const selection = { workspace: 'a', fields: [], properties: [] };
    const request = { selection, key: 'a', weight: 1, isAllowed: () => true };
    const place = { source: { idOf: () => '' }, position: START, throughMs: 0 };
    const listener = new StreamListener(request, place);
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
