import { promises } from 'node:dns';
import { type ClientRequest, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { DnsServer } from '../testing/dns-server.ts';
import { anEvent, type QueryService, startQuery } from '../testing/query-service.ts';
import { accept, manage, Receiver, WEBHOOKS_ENV } from '../testing/webhooks.ts';
import { TESTS_PER_WORKSPACE } from './attempt-places.ts';

let dns: DnsServer;
let query: QueryService;

beforeAll(async () => {
  dns = await DnsServer.start((name) => (name === 'receiver.example' ? ['127.0.0.1'] : undefined));
  // As in the compose file and the chart: ClickHouse has a name, whose look-up shares the threads of the process.
  const url = new URL(inject('clickhouseUrl'));
  url.hostname = 'localhost';
  const env = { ...WEBHOOKS_ENV, WEBHOOK_DNS_SERVERS: dns.address, WEBHOOK_TIMEOUT_MS: '60000' };
  query = await startQuery(url.href, env);
  await query.app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(async () => {
  await query.stop();
  await dns[Symbol.asyncDispose]();
});

/** Names end with a dot, so that this machine's search list does not matter. */
async function subscribe(name: string, workspace: string, port = 80): Promise<string> {
  const { body } = await manage(query, 'POST', '/webhooks', { url: `http://${name}.:${port}/` }, workspace);
  return `/webhooks/${body.id}`;
}

/** Tests webhooks of a workspace; the clients leave when it is disposed of. */
class Testing implements Disposable {
  readonly statuses: (number | undefined)[] = [];
  readonly #requests: readonly ClientRequest[];

  constructor(paths: readonly string[], workspace: string) {
    const { port } = query.app.server.address() as AddressInfo;
    const headers = { authorization: `Bearer webhooks-${workspace}` };
    this.#requests = paths.map((path) =>
      request(`http://127.0.0.1:${port}${path}/test`, { method: 'POST', agent: false, headers }, (response) => {
        this.statuses.push(response.statusCode);
        response.resume();
      })
        .on('error', () => undefined)
        .end(),
    );
  }

  [Symbol.dispose](): void {
    for (const one of this.#requests) one.destroy();
  }
}

const asksFor = (name: string) => eventually(() => dns.asked).toContain(name);

test('receivers whose DNS server never answers hold up nobody else: reads, other webhooks, look-ups', async () => {
  await using receiver = await Receiver.start();
  const silent = Array.from({ length: 10 }, (_, index) => `silent-${index}.example`);
  const paths: string[] = [];
  for (const name of silent) paths.push(await subscribe(name, 'a'));
  await subscribe('receiver.example', 'b', receiver.port);
  await query.store('a', [anEvent()]);
  using _tests = new Testing([...paths, ...paths.slice(0, 6)], 'a');
  for (const name of silent) await asksFor(name);
  // More connections than were open before, so that the name of ClickHouse is looked up again.
  const reads = await Promise.all(Array.from({ length: 8 }, () => query.get('/events', 'b')));
  expect(reads.map(({ status }) => status)).toEqual(Array(8).fill(200));
  expect((await promises.lookup('localhost', { all: true })).length).toBeGreaterThan(0);
  const event = anEvent();
  await query.store('b', [event]);
  await eventually(() => receiver.uuids).toEqual([event.uuid]);
});

test('few tests of a workspace are under way at once, and each ends when its client leaves', async () => {
  await using receiver = await Receiver.start();
  receiver.behaviour = () => undefined;
  const path = await subscribe('receiver.example', 'c', receiver.port);
  const tests = new Testing(Array(TESTS_PER_WORKSPACE).fill(path), 'c');
  await eventually(() => receiver.received.length).toBe(TESTS_PER_WORKSPACE);
  const refused = await query.app.inject({
    ...{ method: 'POST', url: `${path}/test`, headers: { authorization: 'Bearer webhooks-c' } },
  });
  expect([refused.statusCode, refused.json().code, refused.headers['retry-after']]).toEqual([429, 'rate_limited', '5']);
  receiver.behaviour = accept;
  const of = async (workspace: string, one: string) =>
    (await manage(query, 'POST', `${one}/test`, undefined, workspace)).status;
  expect(await of('d', await subscribe('receiver.example', 'd', receiver.port))).toBe(200);
  expect(tests.statuses).toEqual([]);
  tests[Symbol.dispose]();
  const log = async () => (await manage(query, 'GET', `${path}/deliveries`, undefined, 'c')).body['deliveries'];
  await eventually(log).toContainEqual(
    expect.objectContaining({ type: 'test', error: 'it was ended before the receiver answered' }),
  );
  await eventually(() => of('c', path)).toBe(200);
});
