import { once } from 'node:events';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, afterEach, beforeAll, expect, inject, onTestFinished, test, vi } from 'vitest';
import { stopTimers } from '../../testing/gate.ts';
import { metric, openRequest, queriesRunning, readBeginning, responseTo } from '../../testing/load.ts';
import { type QueryService, startQuery } from '../../testing/query-service.ts';

/** 100 MB, also when compressed more than all buffers between ClickHouse and a client that does not read. */
const ROWS = 60_000;
const EXPORT = '/events/export?startDate=2026-01-01';

let service: QueryService;
const requests: ClientRequest[] = [];

beforeAll(async () => {
  service = await startListening({ EXPORT_CONNECTIONS_MAX: '1', REPORT_CONNECTIONS_MAX: '1' });
  for (const workspace of ['a', 'b']) await storeLarge(service, workspace);
});
afterAll(() => service.stop());
afterEach(async () => {
  for (const request of requests.splice(0)) request.destroy();
  await expectIdle();
});

async function startListening(env: Readonly<Record<string, string>>): Promise<QueryService> {
  const started = await startQuery(inject('clickhouseUrl'), env);
  await started.app.listen({ host: '127.0.0.1', port: 0 });
  return started;
}

async function storeLarge({ clickHouse }: QueryService, workspace: string): Promise<void> {
  await clickHouse.command({
    query: `INSERT INTO events (workspace_id, timestamp, uuid, event, properties, received_at)
      SELECT {workspace:String}, toDateTime64('2026-03-01', 3, 'UTC') + toIntervalMillisecond(number), generateUUIDv4(number), 'e',
        concat('{"text":"', hex(randomString(750, number)), '"}'), now64(6)
      FROM numbers({rows:UInt64})`,
    query_params: { workspace, rows: ROWS },
  });
}

function start(path = EXPORT, workspace = 'a', encoding?: string): ClientRequest {
  const request = openRequest(service, path, workspace, encoding);
  requests.push(request);
  return request;
}

/** Starts an export, reads its beginning, and no more of it. */
async function startExport(encoding?: string): Promise<IncomingMessage> {
  const response = await readBeginning(start(EXPORT, 'a', encoding));
  expect(await metric(service, 'sluice_queries{pool="exports",state="running"}')).toBe(1);
  return response;
}

async function expectIdle(): Promise<void> {
  await eventually(() => queriesRunning(service), { interval: 20 }).toBe(0);
  await eventually(() => metric(service, 'sluice_queries{pool="exports",state="running"}')).toBe(0);
}

test.each(['identity', 'gzip'])('a client that leaves (%s) ends its query in ClickHouse', async (encoding) => {
  const response = await startExport(encoding);
  response.destroy();
  await expectIdle();
});

test('a client that reads slowly is not cut off when the time of a query is up, and gets everything', async () => {
  const timeIsUp = new AbortController();
  const clock = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(timeIsUp.signal);
  onTestFinished(() => clock.mockRestore());
  const response = await startExport();
  clock.mockRestore();
  timeIsUp.abort();
  let tail = '';
  for await (const chunk of response) tail = (tail + (chunk as Buffer).toString('latin1')).slice(-100);
  expect(response.complete).toBe(true);
  expect(tail.endsWith(`\n{"complete":true,"events":${ROWS}}\n`)).toBe(true);
});

test('an export keeps neither a page nor a report waiting, and another one of its workspace is refused after a while', async () => {
  await startExport();
  expect((await service.get('/events?limit=1&total=none')).status).toBe(200);
  const pass = stopTimers();
  const waiting = service.get(EXPORT);
  await eventually(() => metric(service, 'sluice_queries{pool="exports",state="waiting"}')).toBe(1);
  pass(service.config.QUERY_TIMEOUT_MS);
  const other = await waiting;
  expect([other.status, other.body.code]).toEqual([503, 'overloaded']);
  expect((await service.get('/events?limit=1&total=none')).status).toBe(200);
});

test('an export whose client reads slowly gives way to one of another workspace', async () => {
  const slow = await startExport();
  const wanting = async () => {
    const response = await responseTo(start(EXPORT, 'b'));
    const { statusCode } = response;
    response.destroy();
    return statusCode;
  };
  await eventually(wanting).toBe(200);
  await expect(async () => {
    for await (const _ of slow);
  }).rejects.toThrow('aborted');
});

test('a service that stops breaks exports off: their clients continue elsewhere', async () => {
  const stopping = await startListening({});
  try {
    await storeLarge(stopping, 'a');
    const response = await responseTo(openRequest(stopping, EXPORT));
    await once(response, 'readable');
    const closed = stopping.app.close();
    let text = '';
    await expect(async () => {
      for await (const chunk of response) text = (text + (chunk as Buffer).toString('latin1')).slice(-100);
    }).rejects.toThrow('aborted');
    expect(text).not.toContain('"complete"');
    await closed;
  } finally {
    await stopping.stop();
  }
});
