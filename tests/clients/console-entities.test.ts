import { eventually } from '@sluice/shared/testing/eventually';
import type { Browser, Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { expectAccessible, type Look, looks, openSignedInConsole, tourOf } from '../kit/clients/console-page.ts';
import { overflowOf, shown, tabTo } from '../kit/clients/pages.ts';
import { sharedBrowser } from '../kit/clients/shared-browser.ts';
import type { EventPage } from '../kit/records.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

let pipeline: Tenant;
let browser: Browser;

/** Events of `jane`, in UTC: two sessions, the later one over midnight in Berlin. */
const SESSIONS = [
  ['2026-01-10T21:00:00Z', 'signed_in'],
  ['2026-01-10T21:20:00Z', 'viewed'],
  ['2026-01-10T22:50:00Z', 'signed_in'],
  ['2026-01-10T23:10:00Z', 'viewed'],
  ['2026-01-10T23:25:00Z', 'paid'],
] as const;

/** Text that is written from right to left, in Hebrew and Arabic, and an emoji. */
const HOSTILE = 'שלום/مرحبا 😀 <b>&amp;';

/** As many levels as ingest-api takes. */
const DEPTH = 32;

function nested(depth: number): unknown {
  return depth === 1 ? { deepest: 'here' } : { [`level${depth}`]: nested(depth - 1) };
}

beforeAll(async () => {
  [pipeline, browser] = await Promise.all([takeTenant('consoleentities'), sharedBrowser()]);
  const submissions: unknown[] = [
    { foreignUserGroupId: 'acme', foreignUserId: 'jane', events: sessionEvents(), properties: { tier: 'gold' } },
    {
      foreignUserGroupId: 'acme',
      foreignUserId: HOSTILE,
      events: [
        {
          ...{ event: '🎉 <img src=x> مرحبا', timestamp: '2026-01-11T10:00:00Z' },
          properties: {
            ...{ plan: 'pro', amount: 9.5, empty: '', nothing: null, tags: ['web', 'red, green'], many: range(5_000) },
            ...{ long: `${'x'.repeat(120_000)}END`, deep: nested(DEPTH - 2), קשה: 'ערך', __proto__x: true },
          },
          context: { browser: 'Firefox' },
        },
        { event: 'exact', timestamp: '2026-01-11T10:01:00Z', properties: { amount: 12 } },
      ],
    },
    ...range(30).map((index) => ({
      ...{ foreignUserGroupId: 'crowd', foreignUserId: `member-${String(index).padStart(2, '0')}` },
      events: [{ event: 'joined', timestamp: '2026-01-12T10:00:00Z' }],
    })),
    {
      ...{ foreignUserGroupId: 'crowd', foreignUserId: 'busy' },
      events: range(130).map((index) => ({
        event: index % 10 === 0 ? 'signed_in' : 'clicked',
        timestamp: new Date(Date.UTC(2026, 0, 13, 8) + index * 60_000).toISOString(),
      })),
    },
    {
      ...{ foreignUserGroupId: 'acme', foreignUserId: 'recent' },
      events: range(60).map((index) => ({
        event: index % 3 === 0 ? 'signed_in' : 'clicked',
        timestamp: new Date(Date.now() - index * 9 * 3_600_000).toISOString(),
      })),
    },
  ];
  for (const submission of submissions) expect((await pipeline.submit(submission)).status).toBe(202);
  const properties = { foreignId: 'jane', properties: { plan: 'pro', address: { city: 'Bonn' } } };
  expect((await pipeline.submit(properties, { path: '/v1/public/users' })).status).toBe(202);
  await pipeline.drained();
});

function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

function sessionEvents() {
  return SESSIONS.map(([timestamp, event]) => ({ timestamp, event, properties: { plan: 'pro' } }));
}

const open = (hash?: string, look?: Look) => openSignedInConsole({ pipeline, browser }, hash, look);
const userHash = (id: string) => `#/users/${encodeURIComponent(id)}`;
const panelOf = (page: Page) => page.getByRole('region', { name: 'Event', exact: true });

/** Sends a request to query-api. */
async function send(method: string, path: string, body?: object): Promise<Response> {
  return await fetch(`${pipeline.services['query-api'].url}${path}`, {
    method,
    headers: { authorization: `Bearer ${pipeline.key}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
}

/** Returns the parameters of the address, decoded. */
function addressOf(page: Page): string {
  return decodeURIComponent(new URL(page.url()).hash.replaceAll('+', ' '));
}

test('an event opens beside the list, the keyboard moves through the list, and Escape leaves it', async () => {
  const { page, faults } = await open('#/events?userId=jane');
  const { body } = await pipeline.get<EventPage>('/events?userId=jane');
  const uuids = body.results.map(({ uuid }) => uuid);
  await tabTo(page, page.getByRole('link', { name: 'paid', exact: true }));
  await page.keyboard.press('Enter');
  const shows = (index: number) => shown(panelOf(page).getByText(uuids[index] ?? '', { exact: true }));
  await shows(0);
  expect(addressOf(page)).toBe(`#/events?userId=jane&show=${uuids[0]}`);
  await page.keyboard.press('ArrowDown');
  await shows(1);
  await page.keyboard.press('ArrowDown');
  await shows(2);
  await page.keyboard.press('ArrowUp');
  await shows(1);
  expect(addressOf(page)).toBe(`#/events?userId=jane&show=${uuids[1]}`);
  await page.keyboard.press('Escape');
  await eventually(() => panelOf(page).count()).toBe(0);
  expect(addressOf(page)).toBe('#/events?userId=jane');
  expect(await page.evaluate('document.activeElement.dataset.event')).toBe(uuids[1]);
  expect(faults).toEqual([]);
});

test('an address opens an event that its list does not show, and says when there is none', async () => {
  const { body } = await pipeline.get<EventPage>('/events?userId=jane&limit=1');
  const uuid = body.results[0]?.uuid ?? '';
  const { page, faults } = await open(`#/events?event=exact&show=${uuid}`);
  await shown(panelOf(page).getByRole('link', { name: 'jane', exact: true }));
  const { url } = pipeline.services['query-api'];
  await page.goto(`${url}/console/#/events?show=00000000-0000-4000-8000-000000000000`);
  await shown(panelOf(page).getByText('There is no event with the uuid 00000000-0000-4000-8000-000000000000.'));
  await page.goto(`${url}/console/#/events?show=nonsense`);
  await eventually(() => panelOf(page).getByRole('alert').textContent()).toContain('must be a UUID');
  expect(faults).toEqual([]);
});

test('the tree of a large and deep event opens by keyboard, and filters and charts by its values', async () => {
  const { page, faults } = await open('#/events?event%5Bcontains%5D=img');
  await page.getByRole('link', { name: '🎉 <img src=x> مرحبا' }).click();
  const panel = panelOf(page);
  await shown(panel.getByText('"pro"'));
  // What is closed or long is not in the page.
  expect(((await panel.textContent()) ?? '').length).toBeLessThan(10_000);
  expect(await panel.locator('img').count()).toBe(0);
  await panel.locator('summary', { hasText: /^many/ }).click();
  await shown(panel.getByRole('button', { name: 'Show 100 more of 4,900' }));
  await panel.locator('summary', { hasText: /^many/ }).click();

  const summaries = panel.locator('summary', { hasText: /^(deep|level\d+)/ });
  for (let depth = 0; depth < DEPTH - 2; depth += 1) {
    const summary = summaries.nth(depth);
    await shown(summary);
    await summary.focus();
    if (!(await summary.evaluate((element) => element.parentElement?.hasAttribute('open')))) {
      await page.keyboard.press('Enter');
    }
  }
  await shown(panel.getByText('"here"'));

  await panel.getByRole('button', { name: 'Show more of 120,005 characters' }).click();
  await panel.getByRole('button', { name: 'Show more of 120,005 characters' }).click();
  // A regular expression would be tried from each of its characters.
  await eventually(async () => (await panel.textContent())?.includes(`${'x'.repeat(1_000)}END"`)).toBe(true);

  const chart = panel.getByRole('link', { name: 'Chart the property amount' });
  expect(decodeURIComponent((await chart.getAttribute('href')) ?? '')).toBe(
    '#/explore?report=series&event=🎉+<img+src=x>+مرحبا&measure=avg:properties.amount',
  );
  await tabTo(page, panel.getByRole('link', { name: 'Filter by this value of plan' }));
  await page.keyboard.press('Enter');
  // The list has one event before and after that.
  await eventually(() => addressOf(page)).toBe('#/events?event[contains]=img&properties.plan=pro');
  await shown(page.getByText('1 of 1 event.'));
  expect(faults).toEqual([]);
});

test('an event is copied as JSON and as a command, which repeats it', async () => {
  const { page, context, faults } = await open('#/events?event=exact');
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('link', { name: 'exact', exact: true }).click();
  const copied = panelOf(page).getByRole('button', { name: 'Copied', exact: true });
  const copy = async (name: RegExp) => {
    const before = await copied.count();
    await panelOf(page).getByRole('button', { name }).click();
    await shown(copied.nth(before));
    return await page.evaluate<string>('navigator.clipboard.readText()');
  };
  const { body } = await pipeline.get<EventPage>('/events?event=exact');
  const json = await copy(/Copy as JSON/);
  expect(JSON.parse(json)).toEqual(body.results[0]);
  const command = await copy(/Copy as curl/);
  const [, submission = ''] = /-d '(.*)'$/s.exec(command) ?? [];
  expect(command).toContain('Bearer YOUR_KEY');
  const response = await pipeline.submit(JSON.parse(submission));
  expect([response.status, response.body.events]).toEqual([202, [{ uuid: body.results[0]?.uuid }]]);
  await pipeline.drained();
  expect((await pipeline.get<EventPage>('/events?event=exact')).body.total).toBe(1);
  expect(faults).toEqual([]);
});

test.each([
  [
    'Europe/Berlin',
    ['11 January 2026', '10 January 2026'],
    'Session from Saturday 10 January 2026, 23:50:00 to 00:25:00: 3 events, 35 minutes',
  ],
  ['UTC', ['10 January 2026'], 'Session from 22:50:00 to 23:25:00: 3 events, 35 minutes'],
])('a user has days and sessions as they are in %s', async (zone, days, later) => {
  const { page, faults } = await open(userHash('jane'), { zone });
  const timeline = page.getByRole('region', { name: 'Events', exact: true });
  await shown(timeline.getByText('All 5 events.'));
  await eventually(() => timeline.getByRole('heading', { level: 3 }).allTextContents()).toEqual(
    days.map((day) => expect.stringContaining(day)),
  );
  const sessions = (await timeline.locator('.session').allTextContents()).map((text) => text.replace('day, ', 'day '));
  expect(sessions[0]).toBe(later);
  expect(sessions.at(-1)).toMatch(/^Session from 2[12]:00:00 to 2[12]:20:00: 2 events, 20 minutes$/);
  // How long ago it was set is said, and when in full.
  const set = page.getByRole('row', { name: /^plan "pro" (now|\d+ \w+ ago)$/ }).locator('time');
  expect(await set.getAttribute('title')).toMatch(/^\d+ \w+ \d{4}, \d\d:\d\d:\d\d \(.*Z\)$/);
  expect(faults).toEqual([]);
});

test('older events of a user are loaded on demand, and its events are searched by name', async () => {
  const { page, faults } = await open(userHash('busy'));
  const timeline = page.getByRole('region', { name: 'Events', exact: true });
  await shown(timeline.getByText('The newest 100 events.'));
  await eventually(() => timeline.locator('.session').allTextContents()).toEqual([
    expect.stringContaining('at least 100 events'),
  ]);
  // The keyboard goes through all events to get here.
  await timeline.getByRole('link').last().focus();
  await tabTo(page, timeline.getByRole('button', { name: 'Load older events' }));
  await page.keyboard.press('Enter');
  await shown(timeline.getByText('All 130 events.'));
  await eventually(() => timeline.locator('.session').allTextContents()).toEqual([
    expect.stringMatching(/: 130 events, 2.* hours$/),
  ]);
  await timeline.getByLabel('Event name contains', { exact: true }).focus();
  await page.keyboard.type('signed');
  await page.keyboard.press('Enter');
  await shown(timeline.getByText('All 13 events.'));
  expect(addressOf(page)).toBe('#/users/busy?event[contains]=signed');
  // Between some of the events there are gaps that are none.
  await eventually(() => timeline.locator('.session').count()).toBe(0);
  expect(faults).toEqual([]);
});

test('an organization lists its users a page at a time', async () => {
  const { page, faults } = await open('#/organizations/crowd');
  const users = page.getByRole('region', { name: 'Users', exact: true });
  const links = () => users.getByRole('link').allTextContents();
  await shown(users.getByText('Page 1'));
  await eventually(links).toEqual(['busy', ...range(11).map((index) => `member-${String(index).padStart(2, '0')}`)]);
  await tabTo(page, users.getByRole('button', { name: 'Next users' }));
  await page.keyboard.press('Enter');
  await eventually(links).toEqual(range(12).map((index) => `member-${index + 11}`));
  await users.getByRole('button', { name: 'Previous users' }).press('Enter');
  await eventually(async () => (await links())[0]).toBe('busy');
  // Events of several people have no sessions.
  await shown(page.getByRole('region', { name: 'Events', exact: true }).getByText('The newest 100 events.'));
  expect(await page.locator('.session').count()).toBe(0);
  expect(faults).toEqual([]);
});

test('a segment is made from a list, filters reports and lists, is changed, and deleted once no view names it', async () => {
  const { page, faults } = await open('#/organizations?properties.tier=gold');
  await page.getByRole('link', { name: 'Save as segment' }).click();
  const created = page.getByRole('form', { name: 'New segment' });
  await shown(created);
  await created.getByLabel('Name').fill('gold');
  expect(await created.getByLabel('Of').inputValue()).toBe('organizations');
  await created.getByRole('button', { name: 'Save the segment' }).click();
  await shown(page.getByText('Organization: tier is gold: 1 organization'));
  await page.getByRole('link', { name: '1 organization' }).click();
  await shown(page.getByRole('link', { name: 'The segment gold' }));
  await shown(page.getByRole('row', { name: /^acme/ }));
  expect(await page.getByRole('row', { name: /^crowd/ }).count()).toBe(0);

  await page.getByRole('navigation').getByRole('link', { name: 'Segments' }).click();
  await shown(page.getByRole('row', { name: /^gold Organization: tier is gold 1 organization / }));

  // It is chosen in the filters of a report, whose menu keeps it, and turned around.
  await page.goto(
    `${pipeline.services['query-api'].url}/console/#/explore?report=values&property=groupId&event=joined&range=60m`,
  );
  const filters = page.getByRole('form', { name: 'Filters' });
  await filters.getByRole('button', { name: 'Add a filter' }).click();
  await filters.getByLabel('Property or field', { exact: true }).fill('Segm');
  await page.getByRole('option', { name: 'Segment', exact: true }).click();
  await filters.getByRole('combobox', { name: 'Value', exact: true }).click();
  await page.getByRole('option', { name: 'gold organizations' }).click();
  await filters.getByLabel('Operator').selectOption('is not');
  await eventually(() => addressOf(page)).toContain('segment[ne]=gold');
  const number = page.locator('a.number-link', { hasText: '30' }).first();
  await eventually(async () => decodeURIComponent((await number.getAttribute('href')) ?? '')).toContain(
    'segment[ne]=gold',
  );

  // Organizations that did not do something: what they did is added to what is known of them.
  await page.goto(`${pipeline.services['query-api'].url}/console/#/segments/gold`);
  const changed = page.getByRole('form', { name: 'What gold is' });
  await changed.getByRole('button', { name: 'Add what they did' }).click();
  await changed.getByLabel('Whether they did it').selectOption('Did not do');
  await changed.getByLabel('Event that they did', { exact: true }).fill('signed_in');
  await changed.getByLabel('days').fill('14');
  await changed.getByRole('button', { name: 'Save the segment' }).click();
  await shown(page.getByText('Organization: tier is gold, did not do “signed_in” within 14 days: 0 organizations'));

  const view = { name: 'Gold', report: 'series', parameters: { range: '30d', segment: 'gold' } };
  const { id } = (await (await send('POST', '/views', view)).json()) as { readonly id: string };
  const remove = async () => {
    await page.getByRole('button', { name: 'Delete the segment' }).click();
    await page.getByRole('button', { name: 'Delete it' }).click();
  };
  await remove();
  await eventually(() => page.getByRole('alert').textContent()).toContain(`views.${id} names it: "Gold"`);
  expect((await send('DELETE', `/views/${id}`)).status).toBe(204);
  await remove();
  await shown(page.getByRole('heading', { level: 1, name: 'Segments' }));
  expect((await pipeline.get('/segments/gold')).status).toBe(404);
  expect(faults).toEqual([]);
});

test('a time without events says when the newest one is', async () => {
  const { page, faults } = await open('#/events?userId=jane&startDate=2026-02-01&endDate=2026-02-02');
  await shown(page.getByText('The newest event is of 11 Jan 2026, 00:25:00'));
  await tabTo(page, page.getByRole('link', { name: 'show it' }));
  await page.keyboard.press('Enter');
  await shown(page.getByText('5 of 5 events.'));
  await page.goto(`${pipeline.services['query-api'].url}/console/${userHash('jane')}`);
  const activity = page.getByRole('region', { name: 'Activity' });
  await shown(activity.getByText('The newest event is of 11 Jan 2026, 00:25:00'));
  expect(faults).toEqual([]);
});

test('a user is found and deleted by keyboard alone', async () => {
  const id = 'to be+deleted/ü';
  const submission = { foreignUserGroupId: 'acme', foreignUserId: id, events: [{ event: 'last' }] };
  expect((await pipeline.submit(submission)).status).toBe(202);
  await pipeline.drained();
  const { page, faults } = await open();
  await tabTo(page, page.getByRole('link', { name: 'Users', exact: true }));
  await page.keyboard.press('Enter');
  await shown(page.getByRole('row', { name: new RegExp(`^${RegExp.escape(id)}`) }));
  await tabTo(page, page.getByRole('link', { name: id, exact: true }));
  await page.keyboard.press('Enter');
  const confirmation = page.getByRole('form', { name: 'Delete this user' });
  await shown(confirmation);
  const button = confirmation.getByRole('button', { name: 'Delete the user' });
  await tabTo(page, confirmation.getByLabel('Type the identifier to confirm'));
  await page.keyboard.type(id.slice(0, -1));
  expect(await button.isDisabled()).toBe(true);
  await page.keyboard.press('Enter');
  expect((await pipeline.get(`/users/${encodeURIComponent(id)}`)).status).toBe(200);
  await page.keyboard.type(id.slice(-1));
  await tabTo(page, button);
  await page.keyboard.press('Enter');
  await shown(page.getByText('The deletion was accepted.'));
  await eventually(async () => (await pipeline.get(`/users/${encodeURIComponent(id)}`)).status).toBe(404);
  await page.reload();
  await eventually(() => page.getByRole('alert').textContent()).toBe('There is no such user.');
  await shown(page.getByText('the user was deleted'));
  expect(faults).toEqual([]);
});

test('a key without the scope delete is told so, and gets the command', async () => {
  const { page, faults } = await open(userHash(HOSTILE));
  const key = await pipeline.addKey('test', ['query']);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('API key').fill(key);
  await page.keyboard.press('Enter');
  const confirmation = page.getByRole('form', { name: 'Delete this user' });
  await confirmation.getByLabel('Type the identifier to confirm').fill(HOSTILE);
  await page.keyboard.press('Enter');
  await shown(page.getByRole('alert').getByText('The API key lacks the scope "delete".'));
  await shown(page.getByText(`/v1/users?foreignId=${encodeURIComponent(HOSTILE)}'`));
  expect((await pipeline.get(`/users/${encodeURIComponent(HOSTILE)}`)).status).toBe(200);
  expect(faults).toEqual([]);
});

test('a user whose identifier no path can have is deleted too', async () => {
  const submission = { foreignUserGroupId: 'acme', foreignUserId: '..', events: [{ event: 'dotted' }] };
  expect((await pipeline.submit(submission)).status).toBe(202);
  await pipeline.drained();
  const { page, faults } = await open('#/users/..');
  await shown(page.getByRole('link', { name: 'dotted', exact: true }));
  await page.getByLabel('Type the identifier to confirm').fill('..');
  await page.keyboard.press('Enter');
  await shown(page.getByText('The deletion was accepted.'));
  await eventually(async () => (await pipeline.get<EventPage>('/events?userId=..')).body.total).toBe(0);
  expect(faults).toEqual([]);
});

test('a user has the events of its visitors, and a visitor is taken back', async () => {
  const submissions = [
    { foreignUserGroupId: 'acme', events: [{ event: 'first visit', anonymousId: 'phone' }] },
    { foreignUserGroupId: 'acme', foreignUserId: 'ann', events: [{ event: 'signed up', anonymousId: 'phone' }] },
  ];
  for (const submission of submissions) expect((await pipeline.submit(submission)).status).toBe(202);
  await pipeline.drained();
  const countOf = async () => (await pipeline.get<EventPage>('/events?userId=ann&identity=linked')).body.total;
  await eventually(countOf).toBe(2);
  const { page, faults } = await open(userHash('ann'));
  await shown(page.getByRole('link', { name: 'signed up', exact: true }).last());
  await shown(page.getByRole('link', { name: 'first visit', exact: true }).last());
  const visitors = page.getByRole('region', { name: 'Visitors who are this user' });
  await visitors
    .getByRole('row', { name: /^phone/ })
    .getByRole('button', { name: 'Undo phone' })
    .click();
  await visitors.getByRole('button', { name: 'Undo', exact: true }).click();
  await shown(page.getByText('phone is nobody again'));
  await eventually(countOf).toBe(1);
  expect(faults).toEqual([]);
});

test('from a first visit on a phone to a purchase on a laptop is a funnel of one person, until a device is taken back', async () => {
  const on = (anonymousId: string, event: string, minute: number) => ({
    ...{ event, anonymousId, timestamp: new Date(Date.UTC(2026, 0, 20, 8, minute)).toISOString() },
  });
  const submissions = [
    // Before anybody knows whose the devices are. Who only looks is nobody.
    {
      foreignUserGroupId: 'shop',
      events: [on('fay’s phone', 'visited', 0), on('fay’s laptop', 'compared', 10), on('somebody’s', 'visited', 11)],
    },
    {
      foreignUserGroupId: 'shop',
      foreignUserId: 'fay',
      events: [on('fay’s phone', 'logged in', 20), on('fay’s laptop', 'bought', 30)],
    },
  ];
  for (const submission of submissions) expect((await pipeline.submit(submission)).status).toBe(202);
  await pipeline.drained();
  const funnel = 'steps=visited,compared,bought&startDate=2026-01-20&endDate=2026-01-20';
  const counts = async () => {
    const { body } = await pipeline.get<{ steps: { count: number }[] }>(`/events/funnel?${funnel}&identity=linked`);
    return body.steps.map(({ count }) => count);
  };
  await eventually(counts).toEqual([1, 1, 1]);
  const { page, faults } = await open(`#/explore?report=funnel&${funnel}`);
  await shown(page.getByText('1 of 1 went all the way.'));
  const steps = page.getByRole('table', { name: /^Users at each step$/ });
  await steps
    .getByRole('row', { name: /bought/ })
    .getByRole('link', { name: '1', exact: true })
    .first()
    .click();
  await page.getByRole('link', { name: 'fay', exact: true }).click();
  const visitors = page.getByRole('region', { name: 'Visitors who are this user' });
  await visitors.getByRole('button', { name: 'Undo fay’s laptop' }).click();
  await visitors.getByRole('button', { name: 'Undo', exact: true }).click();
  await shown(page.getByText('fay’s laptop is nobody again'));
  await eventually(counts).toEqual([1, 0, 0]);
  await page.goto(`${pipeline.services['query-api'].url}/console/#/explore?report=funnel&${funnel}`);
  await shown(page.getByText('0 of 1 went all the way.'));
  expect(faults).toEqual([]);
});

test('a user is merged into another one, whose page says so and takes it back', async () => {
  for (const foreignUserId of ['old liz', 'liz']) {
    const submission = { foreignUserGroupId: 'acme', foreignUserId, events: [{ event: `of ${foreignUserId}` }] };
    expect((await pipeline.submit(submission)).status).toBe(202);
  }
  await pipeline.drained();
  const countOf = async () => (await pipeline.get<EventPage>('/events?userId=liz&identity=linked')).body.total;
  expect(await countOf()).toBe(1);
  const old = await open(userHash('old liz'));
  await old.page.getByLabel('Merge into the user').fill('liz');
  await old.page.keyboard.press('Enter');
  await shown(old.page.getByText('old liz became liz'));
  await shown(old.page.getByText('This user became'));
  await eventually(countOf).toBe(2);
  const { page, faults } = await open(userHash('liz'));
  await shown(page.getByRole('link', { name: 'of old liz', exact: true }).last());
  const became = page.getByRole('list', { name: 'Users who became this one' });
  await became.getByRole('button', { name: 'Undo old liz' }).click();
  await became.getByRole('button', { name: 'Undo', exact: true }).click();
  await shown(page.getByText('old liz is a user of its own again'));
  await eventually(countOf).toBe(1);
  expect([...old.faults, ...faults]).toEqual([]);
});

test('a part that fails says so, and is loaded again on demand', async () => {
  const { page } = await open('#/home');
  let fails = true;
  await page.route('**/events/series?*', (route) => (fails ? route.abort() : route.fallback()));
  await page.goto(`${pipeline.services['query-api'].url}/console/${userHash('jane')}`);
  const activity = page.getByRole('region', { name: 'Activity' });
  await shown(activity.getByText('query-api does not respond.'));
  await shown(page.getByRole('region', { name: 'Events', exact: true }).getByText('All 5 events.'));
  fails = false;
  await activity.getByRole('button', { name: 'Try again' }).press('Enter');
  await shown(activity.getByText(/in the last 30 days/));
});

test('faults of the address of a user are all said', async () => {
  const { page } = await open('#/users/jane?nonsense=1&startDate=never');
  const alert = page.getByRole('region', { name: 'Events', exact: true }).getByRole('alert');
  await eventually(() => alert.textContent()).toMatch(/nonsense.*startDate|startDate.*nonsense/s);
});

interface LookedAt {
  readonly hash: string;
  readonly shows: string;
}

const PAGES: Readonly<Record<string, LookedAt>> = {
  'event-beside': { hash: '#/events?event[contains]=img&show=FIRST', shows: '"pro"' },
  'user-recent': { hash: '#/users/recent', shows: '60 events in the last 30 days, of which today is not over.' },
  'user-hostile': { hash: userHash(HOSTILE), shows: 'All 2 events.' },
  organization: { hash: '#/organizations/crowd', shows: 'The newest 100 events.' },
  'users-list': { hash: '#/users', shows: 'member-00' },
  segments: { hash: '#/segments', shows: 'Organization: tier is gold, did not do “paid” within 14 days' },
  segment: { hash: '#/segments/of-the-tour', shows: 'Their events' },
};

/** Other states of these pages. */
const OTHER_STATES: Readonly<Record<string, LookedAt>> = {
  user: { hash: userHash('jane'), shows: 'All 5 events.' },
  'user-busy': { hash: userHash('busy'), shows: 'The newest 100 events.' },
  'user-unknown': { hash: '#/users/nobody', shows: 'There is no such user.' },
  'events-none': { hash: '#/events?userId=jane&startDate=2026-02-01', shows: 'The newest event is of' },
};

const tour = tourOf(() => ({ pipeline, browser }));

/** What the tour shows, which no other test is to count. */
const SEGMENT = {
  of: 'organizations',
  filters: { 'properties.tier': 'gold' },
  behaviour: [{ did: 'paid', times: 0, days: 14 }],
};

const lookedAt = looks(Object.entries(PAGES), Object.entries(OTHER_STATES));

test.each(lookedAt)('axe-core finds nothing on %s, and nothing is cut off', async (name, { hash, shows }) => {
  const { body } = await pipeline.get<EventPage>('/events?event[contains]=img');
  if (name.startsWith('segment')) expect((await send('PUT', '/segments/of-the-tour', SEGMENT)).status).toBe(200);
  const { page, faults } = await tour.show(hash.replace('FIRST', body.results[0]?.uuid ?? ''));
  const accessible = looks([1280], [390, 360]);
  for (const width of [1280, 390, 360]) {
    await page.setViewportSize({ width, height: 800 });
    await shown(page.getByText(shows).first());
    // A chart takes the new width a moment later.
    await eventually(() => overflowOf(page)).toBe(0);
    if (accessible.includes(width)) await expectAccessible(page, name, `-${width}`);
  }
  expect(faults).toEqual([]);
});
