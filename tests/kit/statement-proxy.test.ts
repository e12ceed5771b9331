import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Moment, startStatementProxy } from './statement-proxy.ts';

const STATEMENT = '/?query_id=sluice-writer/w/store-events/018f3c5e-7b1a-7cc0-9d5e-0242ac120002';

let server: Server;
let url: string;
let seen: string[];

beforeEach(async () => {
  seen = [];
  server = createServer((incoming, outgoing) => {
    seen.push('begun');
    incoming.on('error', () => seen.push('broken off'));
    incoming.on('end', () => outgoing.end('done')).resume();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

test('a statement is looked at before it is passed on, and when its answer comes', async () => {
  const moments: string[] = [];
  await using proxy = await startStatementProxy(url, async (name, moment) => {
    moments.push(`${moment} ${name}`);
  });
  expect(await (await fetch(`${proxy.url}${STATEMENT}`, { method: 'POST', body: 'x' })).text()).toBe('done');
  expect(moments).toEqual(['before store-events', 'after store-events']);
});

test.each<Moment>(['before', 'after'])(
  'an error in onStatement %s ClickHouse responds cuts the connection, and the disposal throws it',
  async (when) => {
    const proxy = await startStatementProxy(url, async (_name, moment) => {
      if (moment === when) throw new Error('unexpected statement');
    });
    await expect(fetch(`${proxy.url}${STATEMENT}`, { method: 'POST', body: 'x' })).rejects.toThrow();
    await expect(proxy[Symbol.asyncDispose]()).rejects.toThrow('unexpected statement');
  },
);

test('a client that goes away in the middle of its upload ends the request behind the proxy as well', async () => {
  await using proxy = await startStatementProxy(url, async () => undefined);
  const upload = request(`${proxy.url}${STATEMENT}`, { method: 'POST' }).on('error', () => undefined);
  upload.write('x');
  await eventually(() => seen).toEqual(['begun']);
  upload.destroy();
  await eventually(() => seen).toEqual(['begun', 'broken off']);
});
