import { Receiver } from '@sluice/query-api/testing/webhooks';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import {
  expectAccessible,
  looks,
  openConsole,
  openSignedInConsole,
  takePictures,
} from '../kit/clients/console-page.ts';
import { arrowTo, isFocused, overflowOf, shown, tabTo, takePicture, violationsOf } from '../kit/clients/pages.ts';
import { sharedBrowser } from '../kit/clients/shared-browser.ts';
import type { EventPage } from '../kit/records.ts';
import type { Service } from '../kit/service.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

/** Calls that are longer are rejected; the writer replays longer ones. */
const EVENT_BYTES_MAX = 2_000;

const stack = new AsyncDisposableStack();
let pipeline: Tenant;
let browser: Browser;
let receiver: Receiver;
/** Rejects what the others of the pipeline take. */
let strict: Service;

beforeAll(async () => {
  [pipeline, browser] = await Promise.all([takeTenant('consoleadmin'), sharedBrowser()]);
  receiver = stack.use(await Receiver.start());
  strict = await pipeline.startAnother('ingest-api', { EVENT_BYTES_MAX: String(EVENT_BYTES_MAX) });
  stack.defer(() => strict.kill9());
});
afterAll(() => stack.disposeAsync());

const openSignedIn = (hash: string, look = {}) => openSignedInConsole({ pipeline, browser }, hash, look);

/** Sends a call that ingest-api rejects, so that it becomes a dead letter. */
async function reject(event: string, text = 'x'): Promise<void> {
  const call = { type: 'track', event, userId: 'ada', messageId: event, properties: { text: text.repeat(3_000) } };
  const response = await fetch(`${strict.url}/v1/batch`, {
    method: 'POST',
    headers: { authorization: `Bearer ${pipeline.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ batch: [call] }),
  });
  expect(await response.json()).toMatchObject({ rejected: [{ index: 0, code: 'too_large' }] });
}

/** Returns the status of a request to query-api with a key. */
async function statusWith(key: string): Promise<number> {
  const response = await fetch(`${pipeline.services['query-api'].url}/events?limit=0`, {
    headers: { authorization: `Bearer ${key}` },
  });
  await response.arrayBuffer();
  return response.status;
}

async function press(page: Page, name: string | RegExp): Promise<void> {
  await tabTo(page, page.getByRole('button', { name }));
  await page.keyboard.press('Enter');
}

test('a key is made, used and revoked by keyboard, and is refused then', async () => {
  const { page, faults } = await openSignedIn('#/keys');
  await shown(page.getByRole('table', { name: 'Keys of the workspace' }));
  await tabTo(page, page.getByRole('checkbox', { name: /^query:/ }));
  await page.keyboard.press('Space');
  await tabTo(page, page.getByLabel('What it is for'));
  await page.keyboard.type('the till');
  await tabTo(page, page.getByLabel('Events or queries a second'));
  await page.keyboard.type('50');
  await page.keyboard.press('Enter');
  await shown(page.getByText('The key is created.'));
  const text = (await page.locator('.snippet').textContent()) ?? '';
  const title = await page.getByRole('heading', { name: /^The new key/ }).textContent();
  const id = title?.split(' ').at(-1) ?? '';
  await until('the key to be accepted', async () => (await statusWith(text)) === 200);
  await shown(page.getByRole('row', { name: new RegExp(`^${id} the till query 50`) }));
  await takePicture(page, 'keys-created');
  // It is nowhere but on the page.
  await page.reload();
  await shown(page.getByRole('row', { name: new RegExp(`^${id} the till query 50`) }));
  expect(await page.content()).not.toContain(text);
  expect(await page.evaluate('JSON.stringify([{...sessionStorage}, {...localStorage}])')).not.toContain(text);

  await arrowTo(page, page.getByRole('button', { name: `Revoke ${id}` }));
  await page.keyboard.press('Enter');
  await press(page, 'Cancel');
  expect(await page.evaluate('document.activeElement.textContent')).toBe(`Revoke ${id}`);
  await page.keyboard.press('Enter');
  await page.keyboard.press('Enter');
  await shown(page.getByText(`The key ${id} is revoked.`));
  await until('the key to be refused', async () => (await statusWith(text)) === 401);
  await eventually(() => page.getByRole('row', { name: new RegExp(`^${id}`) }).count()).toBe(0);
  expect(faults).toEqual([]);
});

test('a form without a scope says what is wrong, and keeps what was typed', async () => {
  const { page } = await openSignedIn('#/keys');
  await page.getByLabel('Events or queries a second').fill('7');
  await page.getByRole('button', { name: 'Create a key' }).click();
  await eventually(() => page.getByRole('alert').textContent()).toMatch(/scopes must name a scope/);
  expect(await page.getByLabel('Events or queries a second').inputValue()).toBe('7');
});

test('a rejected call is opened and replayed by keyboard, and its event appears', async () => {
  const hostile = '<img src=x onerror=alert(1)>\u202e 🦊 ';
  await reject(`late ${hostile}`);
  const { page, faults } = await openSignedIn('#/dead-letters');
  await shown(page.getByRole('link', { name: /./ }).first());
  const link = page.getByRole('table', { name: /Dead letters/ }).getByRole('link');
  await until('the dead letter to be stored', async () => {
    await page.reload();
    await shown(page.getByRole('heading', { level: 1, name: 'Dead letters' }));
    await page.waitForLoadState('networkidle');
    return (await link.count()) === 1;
  });
  await tabTo(page, link);
  await page.keyboard.press('Enter');
  await shown(page.getByText('rejected call'));
  expect(await page.locator('.snippet').textContent()).toContain('late <img src=x onerror=alert(1)>');
  expect(await page.locator('.description').textContent()).toContain('A call must be at most 2000 bytes');

  await press(page, 'Replay');
  await page.keyboard.press('Enter');
  await shown(page.getByText('It is replayed'));
  await pipeline.settled(1);
  const { body } = await pipeline.get<EventPage>('/events');
  expect(body.results.map(({ event }) => event)).toEqual([`late ${hostile}`]);
  // Twice changes nothing. The page says already what it says then.
  const again = page.waitForResponse('**/replay');
  await press(page, 'Replay');
  await page.keyboard.press('Enter');
  expect((await again).ok()).toBe(true);
  await pipeline.drained();
  await pipeline.settled(1);

  await tabTo(page, page.getByRole('main').getByRole('link', { name: 'Dead letters' }));
  await page.keyboard.press('Enter');
  await shown(page.getByText('No dead letter waits to be replayed.'));
  await takePicture(page, 'dead-letters-none');
  await page.getByLabel('State').selectOption('Replayed');
  await page.getByRole('button', { name: 'Apply' }).click();
  await eventually(() => link.count()).toBe(1);
  expect(new URL(page.url()).hash).toBe('#/dead-letters?replayed=true');
  expect(faults).toEqual([]);
});

test('dead letters are grouped by reason, and a call is changed and sent again by keyboard', async () => {
  for (const event of ['wrong 1', 'wrong 2']) await reject(event);
  await pipeline.drained();
  const { page, faults } = await openSignedIn('#/dead-letters');
  const reasons = page.getByRole('table', { name: /^Reasons/ });
  await arrowTo(
    page,
    reasons
      .getByRole('row', { name: /A call must be at most 2000 bytes/ })
      .getByRole('link', { name: '2 dead letters', exact: true }),
  );
  await takePicture(page, 'dead-letters-reasons');
  await page.keyboard.press('Enter');
  await shown(page.getByRole('link', { name: 'All reasons' }));
  await eventually(() =>
    page
      .getByRole('table', { name: /Dead letters/ })
      .getByRole('link')
      .count(),
  ).toBe(2);
  await page
    .getByRole('table', { name: /Dead letters/ })
    .getByRole('link')
    .first()
    .click();
  const call = page.getByRole('textbox', { name: 'The call' });
  await shown(call);
  await takePicture(page, 'dead-letter-call');
  await tabTo(page, call);
  await page.keyboard.press('ControlOrMeta+A');
  await page.keyboard.insertText('{"type":"track","event":"corrected"}');
  await press(page, 'Send this call');
  await eventually(() => page.getByRole('alert').textContent()).toMatch(/One of userId, anonymousId/);
  // What was typed stays.
  await tabTo(page, call);
  await page.keyboard.press('ControlOrMeta+A');
  await page.keyboard.insertText(
    '{"type":"track","event":"corrected","userId":"ada","properties":{"id":12345678901234567890}}',
  );
  await press(page, 'Send this call');
  await shown(page.getByText('It is replayed'));
  const found = await until('the event', async () => {
    const { results } = (await pipeline.get<EventPage>('/events?event=corrected')).body;
    return results.length === 1 && results;
  });
  expect(found).toMatchObject([{ userId: 'ada' }]);
  await page.goBack();
  await eventually(() =>
    page
      .getByRole('table', { name: /Dead letters/ })
      .getByRole('link')
      .count(),
  ).toBe(1);
  expect(faults).toEqual([]);
});

test('rejected calls are on the home page with their client, and the share of each client is on that of the pipeline', async () => {
  const key = await pipeline.addKey('rejecting', ['ingest', 'query', 'admin']);
  const context = { library: { name: 'analytics-swift', version: '1.9.0' } };
  const call = { type: 'track', event: 'e', context };
  expect((await pipeline.submit({ batch: [call] }, { path: '/v1/batch', key })).status).toBe(200);
  await pipeline.drained();
  const { page, faults } = await openConsole({ pipeline, browser });
  await page.getByLabel('API key').fill(key);
  await page.keyboard.press('Enter');
  await shown(page.getByText('Waiting for the first event'));
  await shown(page.getByText('1 call was rejected in the last 24 hours; few clients say so.'));
  const newest = page.getByRole('region', { name: 'Newest rejected calls' });
  await shown(newest.getByRole('listitem').getByText(/analytics-swift One of userId, anonymousId/));
  await expectAccessible(page, 'home-rejected');
  await newest.getByRole('link', { name: 'All rejected calls' }).click();
  // What is the same in each row has no column.
  await shown(page.getByRole('row', { name: /analytics-swift One of userId/ }));
  expect(await page.getByRole('columnheader').allTextContents()).not.toContain('Kind');
  await page.goto(`${pipeline.services['query-api'].url}/console/#/pipeline`);
  await shown(page.getByRole('row', { name: /^analytics-swift 1 1 100% identifier 1$/ }));
  expect(faults).toEqual([]);
});

test('a dead letter of another workspace is not there, and the faults of an address are all said', async () => {
  const other = await pipeline.addKey('other');
  await reject('of test');
  const { page } = await openConsole({ pipeline, browser }, '#/dead-letters');
  await page.getByLabel('API key').fill(other);
  await page.keyboard.press('Enter');
  await shown(page.getByText('No dead letter waits to be replayed.'));
  const { url } = pipeline.services['query-api'];
  await page.goto(`${url}/console/#/dead-letters/0123456789abcdef0123456789abcdef`);
  await shown(page.getByRole('alert').getByText('The workspace has no such dead letter.'));
  await page.goto(`${url}/console/#/dead-letters?replayed=maybe&kind=none&cursor=x`);
  await eventually(() => page.getByRole('alert').textContent()).toMatch(/replayed .*kind /s);
  await takePicture(page, 'dead-letters-error');
});

test('a key without the scope is told which one it lacks, and how to make one', async () => {
  const reader = await pipeline.addKey('test', ['query', 'ingest', 'delete']);
  const { page } = await openConsole({ pipeline, browser }, '#/keys');
  await page.getByLabel('API key').fill(reader);
  await page.keyboard.press('Enter');
  await shown(page.getByRole('navigation', { name: 'Pages', exact: true }));
  for (const [hash, heading, scope] of [
    ['keys', 'Keys', 'admin'],
    ['dead-letters', 'Dead letters', 'admin'],
    ['dead-letters/x', 'Dead letter x', 'admin'],
    ['webhooks', 'Webhooks', 'webhooks'],
  ] as const) {
    await page.goto(`${pipeline.services['query-api'].url}/console/#/${hash}`);
    await shown(page.getByRole('heading', { level: 1, name: heading, exact: true }));
    await shown(page.getByRole('alert').getByText(`The API key lacks the scope "${scope}".`));
    await shown(page.getByText(`sluice keys create --workspace NAME --scopes query,${scope}`));
    expect(await violationsOf(page)).toEqual([]);
  }
  await takePicture(page, 'scope-missing');
});

test('a webhook is created and deleted by keyboard; its secret is shown once', async () => {
  const { page, faults } = await openSignedIn('#/webhooks');
  await shown(page.getByText('There are no webhooks.'));
  await tabTo(page, page.getByLabel('Address that gets the events'));
  await page.keyboard.type(receiver.url);
  await page.keyboard.press('Tab');
  await page.keyboard.type('paid');
  // Suggestions, if there are any yet, are closed.
  await page.keyboard.press('Escape');
  await tabTo(page, page.getByRole('button', { name: 'Add a filter' }));
  await page.keyboard.press('Enter');
  const [property, value] = [
    page.getByLabel('Property or field', { exact: true }),
    page.getByLabel('Value', { exact: true }),
  ];
  await tabTo(page, property);
  await page.keyboard.type('a.b.c.d.e.f.g.h.i');
  await page.keyboard.press('Escape');
  await tabTo(page, value);
  await page.keyboard.type('pro');
  await page.keyboard.press('Escape');
  await tabTo(page, page.getByRole('button', { name: 'Create a webhook' }));
  await page.keyboard.press('Enter');
  await eventually(() => page.getByRole('alert').textContent()).toMatch(/filter\.properties\.a\.b\.c/);
  await property.fill('plan');
  await page.keyboard.press('Escape');
  await tabTo(page, page.getByRole('button', { name: 'Create a webhook' }));
  await page.keyboard.press('Enter');
  await shown(page.getByText('The webhook is created.'));
  expect(await page.locator('.snippet').textContent()).toMatch(/^whsec_/);
  await shown(page.getByRole('row', { name: /Event is paid, plan is pro, one by one active/ }));

  await tabTo(page, page.getByRole('link', { name: receiver.url }));
  await page.keyboard.press('Enter');
  await press(page, 'Delete');
  await page.keyboard.press('Escape');
  expect(await page.getByRole('button', { name: 'Delete it' }).count()).toBe(0);
  await press(page, 'Delete');
  await page.keyboard.press('Enter');
  await shown(page.getByText('There are no webhooks.'));
  expect(faults).toEqual([]);
});

test('the menu opens, closes and leads on by keyboard, also on a phone', async () => {
  const { page, faults } = await openSignedIn('#/events');
  await page.setViewportSize({ width: 360, height: 740 });
  const menu = page.locator('summary', { hasText: 'Operate' });
  const link = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Dead letters' });
  const pages = page.getByRole('button', { name: 'Menu' });
  expect((await page.locator('header').boundingBox())?.height).toBeLessThan(60);
  await tabTo(page, pages);
  await page.keyboard.press('Enter');
  await tabTo(page, menu);
  await page.keyboard.press('Enter');
  await shown(link);
  expect(await violationsOf(page)).toEqual([]);
  await takePicture(page, 'menu-360');
  await page.keyboard.press('Escape');
  expect([await link.isVisible(), await page.evaluate('document.activeElement.textContent')]).toEqual([
    false,
    'Operate',
  ]);
  // The menu closes first, then all pages.
  await page.keyboard.press('Escape');
  expect([await menu.isVisible(), await page.evaluate('document.activeElement.textContent.trim()')]).toEqual([
    false,
    'Menu',
  ]);
  await page.keyboard.press('Enter');
  await tabTo(page, menu);
  await page.keyboard.press('Enter');
  await tabTo(page, link);
  await page.keyboard.press('Enter');
  await shown(page.getByRole('heading', { level: 1, name: 'Dead letters' }));
  expect(await link.isVisible()).toBe(false);
  await reject('on a phone');
  await pipeline.drained();
  const send = async (path: string, body: object) => {
    const response = await fetch(`${pipeline.services['query-api'].url}/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${pipeline.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    expect(response.status).toBe(201);
    return (await response.json()) as { readonly id: string };
  };
  await send('keys', { name: 'LongName'.repeat(12), scopes: ['ingest', 'query', 'admin'], rateLimit: 50 });
  const long = await send('webhooks', {
    url: `${receiver.url}${'/long-path'.repeat(15)}`,
    filter: { event: 'paid'.repeat(20) },
  });
  for (const [hash, content] of [
    ['keys', page.getByRole('table', { name: 'Keys of the workspace' })],
    ['dead-letters', page.getByRole('table', { name: /Dead letters/ })],
    ['webhooks', page.getByRole('table', { name: 'Webhooks' })],
    ['pipeline', page.getByText('Fullest partition')],
  ] as const) {
    await page.goto(`${pipeline.services['query-api'].url}/console/#/${hash}`);
    await shown(content);
    for (const width of [390, 360]) {
      await page.setViewportSize({ width, height: 740 });
      await eventually(async () => [hash, await overflowOf(page)]).toEqual([hash, 0]);
      await takePictures(page, hash, `-${width}`);
    }
  }
  const { url } = pipeline.services['query-api'];
  await fetch(`${url}/webhooks/${long.id}`, { method: 'DELETE', headers: { authorization: `Bearer ${pipeline.key}` } });
  expect(faults).toEqual([]);
});

test('lists are one stop of Tab, with the buttons of its row; arrows and letters go from row to row', async () => {
  for (let count = 0; count < 2; count += 1) {
    await pipeline.addKey('test', ['query']);
    await reject(`stop ${count}`);
  }
  await pipeline.drained();
  const { page, faults } = await openSignedIn('#/keys');
  const focused = () => page.evaluate('document.activeElement.textContent');
  const isInTable = () => page.evaluate(`document.activeElement.closest('table') !== null`);
  const buttons = page.getByRole('button', { name: /^Revoke / });
  await shown(buttons.first());
  const [first, second] = await buttons.allTextContents();
  // The row of this session has nothing to go to.
  await page.keyboard.press('j');
  expect(await focused()).toBe(first);
  await page.keyboard.press('Tab');
  expect(await isInTable()).toBe(false);
  await page.keyboard.press('Shift+Tab');
  expect(await focused()).toBe(first);
  await page.keyboard.press('ArrowDown');
  expect(await focused()).toBe(second);
  await page.keyboard.press('Shift+ArrowUp');
  expect(await focused()).toBe(second);
  await page.keyboard.press('Enter');
  expect(await focused()).toBe('Revoke it');
  await page.keyboard.press('Tab');
  expect(await focused()).toBe('Cancel');
  await page.keyboard.press('Tab');
  expect(await isInTable()).toBe(false);
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Enter');
  expect(await focused()).toBe(second);

  await page.goto(`${pipeline.services['query-api'].url}/console/#/dead-letters?replayed=all`);
  const [reasons, letters] = [
    page.getByRole('region', { name: 'Reasons' }),
    page.getByRole('region', { name: 'Dead letters' }),
  ];
  await arrowTo(page, reasons.getByRole('link', { name: /dead letters?$/ }).last());
  await page.keyboard.press('ArrowRight');
  expect(await isFocused(reasons.locator('td:last-child a').last())).toBe(true);
  await page.keyboard.press('Tab');
  expect(await isFocused(letters.getByRole('link').first())).toBe(true);
  await page.keyboard.press('End');
  expect(await isFocused(letters.getByRole('link').last())).toBe(true);
  await page.keyboard.press('Tab');
  expect(await isInTable()).toBe(false);
  expect(faults).toEqual([]);
});

test('where a workspace is read without a key, a page that needs one says so, and the others stay open', async () => {
  const other = await pipeline.startAnother('query-api', { QUERY_ANONYMOUS_WORKSPACE: 'anybody' });
  onTestFinished(() => other.kill9());
  const services = { ...pipeline.services, 'query-api': other };
  const { page, faults } = await openConsole({ pipeline: { services, key: pipeline.key }, browser }, '#/keys');
  await shown(page.getByText('This page needs a key with the scope admin.'));
  await page.getByRole('link', { name: 'Events', exact: true }).click();
  await shown(page.getByText('0 of 0 events.'));
  await page.goBack();
  await page.getByRole('button', { name: 'Sign in with a key' }).click();
  await shown(page.getByRole('heading', { level: 1, name: 'Sign in' }));
  expect(faults).toEqual([]);
});

test('the pipeline has its last hour as lines and as numbers', async () => {
  const { page, faults } = await openSignedIn('#/pipeline');
  await shown(page.getByRole('heading', { name: 'The last hour' }));
  // One a minute. On a busy machine it may lack what a service did not say in time.
  const whole = await until('a whole sample', async () => {
    const { samples } = (await pipeline.get<{ samples: readonly Record<string, unknown>[] }>('/pipeline/history')).body;
    expect(samples[0]?.['acceptedPerSecond'] ?? null).toBeNull();
    return samples.find(({ haltedPartitions }) => haltedPartitions !== null);
  });
  expect(whole).toMatchObject({ haltedPartitions: expect.any(Number) });
  // An hour in place of the minutes since the services of this test started.
  const samples = Array.from({ length: 60 }, (_, minute) => ({
    at: new Date(Date.UTC(2026, 2, 1, 12, minute)).toISOString(),
    acceptedPerSecond: minute === 0 ? null : 100 + (minute % 7),
    storedPerSecond: minute === 0 ? null : 9,
    ...{ lagMessages: minute, lagSeconds: minute > 40 ? null : minute / 10, haltedPartitions: minute > 30 ? 1 : 0 },
  }));
  await page.route('**/pipeline/history', (route) => route.fulfill({ json: { samples } }));
  await page.reload();
  // Each number has an axis of its own: a message holds many events.
  await shown(page.getByRole('img', { name: /^Accepted events a second/ }).locator('canvas'));
  await shown(page.getByRole('img', { name: /^Stored messages a second/ }).locator('canvas'));
  const lag = page.getByRole('region', { name: 'Lag in seconds' });
  for (const name of ['More of the chart', 'All numbers']) {
    await tabTo(page, lag.locator('summary', { hasText: name }));
    await page.keyboard.press('Enter');
  }
  await shown(lag.getByRole('row', { name: /13:31 3.1$/ }));
  await shown(lag.getByRole('row', { name: /13:59 –$/ }));
  await expectAccessible(page, 'pipeline-history');
  expect(faults).toEqual([]);
});

test.each(looks([1280], [390]))('axe-core finds nothing, %d pixels wide', async (width) => {
  await reject('seen by axe');
  const { page, faults } = await openSignedIn('#/keys');
  await page.setViewportSize({ width, height: 800 });
  const look = (name: string) => expectAccessible(page, name, `-${width}`);
  await shown(page.getByRole('table', { name: 'Keys of the workspace' }));
  await look('keys');
  const { url } = pipeline.services['query-api'];
  await page.goto(`${url}/console/#/dead-letters?replayed=all`);
  const table = page.getByRole('table', { name: /Dead letters/ });
  await shown(table);
  await look('dead-letters');
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'These dead letters as CSV' }).click();
  expect((await download).suggestedFilename()).toBe('these-dead-letters.csv');
  await table.getByRole('link').first().click();
  await page.getByRole('button', { name: 'Replay' }).click();
  await look('dead-letter');
  await page.goto(`${url}/console/#/webhooks`);
  await shown(page.getByRole('form', { name: 'New webhook' }));
  await look('webhooks');
  expect(faults).toEqual([]);
});
