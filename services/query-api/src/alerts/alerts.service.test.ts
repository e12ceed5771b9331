import { sleep } from '@sluice/shared/base/retry';
import { takeDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { createDocumentChecker } from '@sluice/shared/testing/openapi';
import { until } from '@sluice/shared/testing/until';
import { Webhook as Verifier } from 'standardwebhooks';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { createAlert, dataOf, saveView, storeWholeLog, storeYesterday, untilStatus } from '../testing/alerts.ts';
import { metric } from '../testing/load.ts';
import { type QueryService, startQuery } from '../testing/query-service.ts';
import { send } from '../testing/views.ts';
import { accept, manage, Receiver, refuse, startWebhooks, WEBHOOKS_ENV } from '../testing/webhooks.ts';
import { ALERTS_MAX } from './alert.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), WEBHOOKS_ENV);
  await storeWholeLog(query);
});
afterAll(() => query.stop());

test('an alert sends one signed message when it fires, and one when it no longer does; a change counts at once', async () => {
  await using receiver = await Receiver.start();
  await storeYesterday(query, 'a', 'paid', 3);
  await storeYesterday(query, 'a', 'other', 5);
  const view = await saveView(query, 'a', 'paid', { groupBy: 'event', range: '30d' });
  const { path, secret, id } = await createAlert(query, 'a', { name: 'Paid', view, url: receiver.url });
  await until('the message that it fires', async () => receiver.received.length > 0);
  expect(await untilStatus(query, 'a', path, 'firing')).toMatchObject({ firing: true, value: 3, reason: null });
  await manage(query, 'PATCH', path, { condition: { is: 'above', threshold: 3 } });
  await untilStatus(query, 'a', path, 'ok');
  await manage(query, 'PATCH', path, { condition: { is: 'below', threshold: 4 } });
  await untilStatus(query, 'a', path, 'firing');
  await until('three messages', async () => receiver.received.length >= 3);
  expect(receiver.received.map(dataOf)).toMatchObject([
    { state: 'firing', condition: { is: 'above', threshold: 2 } },
    { state: 'resolved', condition: { is: 'above', threshold: 3 } },
    { state: 'firing', condition: { is: 'below', threshold: 4 } },
  ]);
  const [first] = receiver.received;
  expect(new Verifier(secret).verify(first?.body ?? '', first?.headers as Record<string, string>)).toMatchObject({
    type: 'alert',
    data: {
      id: first?.headers['webhook-id'],
      alert: { id, name: 'Paid' },
      view: { id: view, name: 'View of paid' },
      ...{ value: 3, before: null, window: '1d', for: 1, endDate: expect.stringMatching(/T00:00:00\.000Z$/) },
    },
  });
  expect(new Set(receiver.ids).size).toBe(3);
  const lines = async () => (await manage(query, 'GET', `${path}/deliveries`)).body['deliveries'] as object[];
  await until('the log', async () => (await lines()).length === 3);
  expect(await lines()).toMatchObject([{ type: 'alert', status: 204 }, { type: 'alert' }, { type: 'alert' }]);
});

test('it counts what the view counts: its measure, its filters and its segments', async () => {
  await using receiver = await Receiver.start();
  await storeYesterday(query, 'b', 'paid', 4);
  const body = { of: 'users', filters: { 'properties.plan': 'pro' } };
  await send(query, 'PUT', '/segments/paying', body, 'admin-b');
  const view = await saveView(query, 'b', 'paid', { segment: 'paying', measure: 'users' });
  const { path } = await createAlert(query, 'b', { view, url: receiver.url, condition: { is: 'absent' } });
  await untilStatus(query, 'b', path, 'firing');
  await send(query, 'PATCH', `/views/${view}`, { parameters: { event: 'paid' } }, 'b');
  // Whatever changes the condition has it judged anew.
  await manage(query, 'PATCH', path, { for: 2 }, 'b');
  expect(await untilStatus(query, 'b', path, 'ok')).toMatchObject({ value: 4 });
});

test('a message that nobody has taken is sent again as it is, also by another instance; and two instances send it once', async () => {
  const database = await takeDatabase(inject('clickhouseUrl'));
  onTestFinished(() => database.release());
  await using receiver = await Receiver.start();
  await using last = await Receiver.start();
  receiver.behaviour = refuse;
  const first = await startWebhooks(database);
  await storeWholeLog(first);
  await storeYesterday(first, 'a', 'paid', 3);
  const view = await saveView(first, 'a', 'paid');
  const { path } = await createAlert(first, 'a', { view, url: receiver.url });
  await until('an attempt', async () => receiver.received.length > 0);
  await first[Symbol.asyncDispose]();
  const [one, other] = [await startWebhooks(database), await startWebhooks(database)];
  onTestFinished(() => one[Symbol.asyncDispose]());
  onTestFinished(() => other[Symbol.asyncDispose]());
  // What is stored by then says something else; the message stays as it was decided.
  await storeYesterday(one, 'a', 'paid', 3);
  const before = receiver.received.length;
  await until('an attempt of another instance', async () => receiver.received.length > before);
  receiver.behaviour = accept;
  const read = async () => (await manage(one, 'GET', path)).body;
  await until(
    'the delivery',
    async () => (await read())['status'] === 'firing' && (await read())['failedAttempts'] === 0,
  );
  expect(new Set(receiver.ids).size).toBe(1);
  expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
  const delivered = receiver.received.length;
  // By the time that a later one has been sent.
  const later = await createAlert(one, 'a', { view, url: last.url });
  await untilStatus(other, 'a', later.path, 'firing');
  await until('the later message', async () => last.received.length > 0);
  expect(receiver.received.length).toBe(delivered);
  expect(last.received.length).toBe(1);
});

test('one that is deleted or paused sends nothing after the answer, and what was due is sent once it goes on', async () => {
  await using receiver = await Receiver.start();
  await using other = await Receiver.start();
  for (const one of [receiver, other]) one.behaviour = refuse;
  await storeYesterday(query, 'c', 'paid', 3);
  const view = await saveView(query, 'c', 'paid');
  const deleted = await createAlert(query, 'c', { view, url: receiver.url });
  const paused = await createAlert(query, 'c', { view, url: other.url });
  await until('attempts', async () => receiver.received.length > 0 && other.received.length > 0);
  await manage(query, 'DELETE', deleted.path, undefined, 'c');
  await manage(query, 'PATCH', paused.path, { state: 'paused' }, 'c');
  const [ofDeleted, ofPaused] = [receiver.received.length, other.received.length];
  // Both would be sent again each second.
  await sleep(3_000);
  expect([receiver.received.length, other.received.length]).toEqual([ofDeleted, ofPaused]);
  expect((await manage(query, 'GET', deleted.path, undefined, 'c')).status).toBe(404);
  other.behaviour = accept;
  await manage(query, 'POST', `${paused.path}/resume`, undefined, 'c');
  await until('the message', async () => other.received.length > ofPaused);
  expect(new Set(other.ids).size).toBe(1);
});

test('a number that cannot be read is an error, and neither absent nor small', async () => {
  await using receiver = await Receiver.start();
  const view = await saveView(query, 'd', 'paid');
  const alert = { view, url: receiver.url, condition: { is: 'above', threshold: 1 } };
  const { path } = await createAlert(query, 'd', alert);
  await untilStatus(query, 'd', path, 'ok');
  await send(query, 'DELETE', `/views/${view}`, undefined, 'd');
  for (const condition of [{ is: 'absent' }, { is: 'below', threshold: 1 }]) {
    await manage(query, 'PATCH', path, { condition }, 'd');
    expect(await untilStatus(query, 'd', path, 'error')).toMatchObject({
      ...{ firing: false, value: null, reason: 'The workspace has no such view.' },
    });
  }
  await until('the metric', async () => (await metric(query, 'sluice_alerts_failing')) === 1);
  expect(await metric(query, 'sluice_alert_evaluations_total{outcome="failed"}')).toBeGreaterThan(0);
  expect(receiver.received).toEqual([]);
  await manage(query, 'DELETE', path, undefined, 'd');
});

test('for Slack a message is a text, in which nothing of a name is formatting', async () => {
  await using receiver = await Receiver.start();
  await storeYesterday(query, 'e', 'paid', 3);
  const view = await saveView(query, 'e', 'paid');
  const { path } = await createAlert(query, 'e', {
    ...{ name: '<!channel> *now*', view, url: receiver.url, format: 'slack' },
  });
  await until('the message', async () => receiver.received.length > 0);
  await manage(query, 'POST', `${path}/test`, undefined, 'e');
  const texts = receiver.received.map(({ body }) => JSON.parse(body) as { text: string });
  expect(texts).toMatchObject([{ mrkdwn: false }, { mrkdwn: false }]);
  const [message, sent] = texts.map(({ text }) => text.replaceAll('\u2060', ''));
  expect(message).toMatch(/^Firing: &lt;!channel&gt; \*now\*\. View of paid: 3 from .* UTC \(fires above 2\)\.$/);
  expect(sent).toBe('Test of the alert &lt;!channel&gt; *now*.');
});

test('a body that is wrong names every fault', async () => {
  const view = await saveView(query, 'f', 'paid');
  const { id: ofValues } = (
    await send(query, 'POST', '/views', { name: 'V', report: 'values', parameters: { property: 'event' } }, 'f')
  ).body;
  const good = { name: 'A', view, condition: { is: 'absent' }, window: '1h', url: 'https://example.com/' };
  const pathsOf = async (given: object) => {
    const { body } = await manage(query, 'POST', '/alerts', { ...good, ...given }, 'f');
    return (body['errors'] as { path: string }[]).map(({ path }) => path).sort();
  };
  expect(
    await pathsOf({
      name: ' ',
      view: 'v',
      condition: { is: 'odd' },
      window: '1w',
      for: 0,
      url: 'ftp://x',
      format: 'x',
    }),
  ).toEqual(['condition.is', 'for', 'format', 'name', 'url', 'view', 'window']);
  expect(await pathsOf({ condition: { is: 'above' } })).toEqual(['condition.threshold']);
  expect(await pathsOf({ condition: { is: 'changes', percent: 0 } })).toEqual(['condition.percent']);
  expect(await pathsOf({ condition: { is: 'absent', threshold: 1 }, more: 1 })).toEqual([
    'condition.threshold',
    'more',
  ]);
  const ofOther = await saveView(query, 'g', 'paid');
  expect(await pathsOf({ view: ofOther, url: 'http://10.0.0.1/' })).toEqual(['url', 'view']);
  expect(await pathsOf({ view: ofValues })).toEqual(['view']);
  expect((await send(query, 'POST', '/alerts', good, 'f')).body).toMatchObject({ code: 'missing_scope' });
});

test('alerts and webhooks are apart, as are workspaces, and there are no more than may be', async () => {
  const view = await saveView(query, 'g', 'none');
  const url = 'https://example.com/';
  const alert = { name: 'A', view, condition: { is: 'above', threshold: 1 }, window: '1d', url };
  const created = await Promise.all(
    Array.from({ length: ALERTS_MAX + 2 }, () => manage(query, 'POST', '/alerts', alert, 'g')),
  );
  expect(created.filter(({ status }) => status === 201).length).toBe(ALERTS_MAX);
  const id = created.find(({ status }) => status === 201)?.body.id;
  expect((await manage(query, 'GET', `/webhooks/${id}`, undefined, 'g')).status).toBe(404);
  expect((await manage(query, 'PATCH', `/webhooks/${id}`, { url }, 'g')).status).toBe(404);
  expect((await manage(query, 'GET', `/alerts/${id}`, undefined, 'h')).status).toBe(404);
  expect((await manage(query, 'GET', '/webhooks', undefined, 'g')).body['webhooks']).toEqual([]);
  expect((await manage(query, 'GET', '/alerts', undefined, 'g')).body['alerts']).toHaveLength(ALERTS_MAX);
  const { body: webhook } = await manage(query, 'POST', '/webhooks', { url }, 'g');
  expect((await manage(query, 'GET', `/alerts/${webhook.id}`, undefined, 'g')).status).toBe(404);
  expect((await manage(query, 'DELETE', `/alerts/${webhook.id}`, undefined, 'g')).status).toBe(404);
});

test('the responses are as documented', async () => {
  const checker = createDocumentChecker((await query.app.inject('/openapi.json')).json());
  const headers = { authorization: 'Bearer webhooks-h' };
  const view = await saveView(query, 'h', 'none');
  const dashboard = (await send(query, 'POST', '/dashboards', { name: 'D', tiles: [{ view, width: 1 }] }, 'h')).body.id;
  const url = 'https://example.com/';
  const bodies = {
    '/alerts': { name: 'A', view, condition: { is: 'changes', percent: 20 }, window: '1d', url },
    '/digests': { dashboard, hour: 8, url },
  };
  for (const [path, payload] of Object.entries(bodies)) {
    const { body } = await manage(query, 'POST', path, payload, 'h');
    for (const [operation, method, address, given] of [
      [`POST ${path}`, 'POST', path, payload],
      [`POST ${path}`, 'POST', path, {}],
      [`GET ${path}`, 'GET', path, undefined],
      [`GET ${path}/{id}`, 'GET', `${path}/${body.id}`, undefined],
      [`PATCH ${path}/{id}`, 'PATCH', `${path}/${body.id}`, { format: 'slack', state: 'paused' }],
      [`POST ${path}/{id}/rotate`, 'POST', `${path}/${body.id}/rotate`, undefined],
      [`POST ${path}/{id}/resume`, 'POST', `${path}/${body.id}/resume`, undefined],
      [`GET ${path}/{id}/deliveries`, 'GET', `${path}/${body.id}/deliveries`, undefined],
      [`GET ${path}/{id}`, 'GET', `${path}/nothing`, undefined],
    ] as const) {
      const response = await query.app.inject({ method, url: address, headers, ...(given && { payload: given }) });
      expect([operation, response.statusCode < 500]).toEqual([operation, true]);
      expect(checker.errorsOfResponse(operation, response), response.body).toBeUndefined();
    }
  }
});
