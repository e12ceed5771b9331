import { execFile } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { until } from '@sluice/shared/testing/until';
import { build } from 'rolldown';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { firstPrograms } from '../../packages/console/src/pages/first-programs.ts';
import { NPM_FOLDER, pythonOf } from '../kit/clients/installation.ts';
import { serveHost, sharedBrowser } from '../kit/clients/shared-browser.ts';
import type { EventPage } from '../kit/records.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

// The programs that docs/guide/producers.md and the console's first page begin with run as they are, but for the address and
// the key, with the packages that they say.

const run = promisify(execFile);

const text = await readFile(new URL('../../docs/guide/producers.md', import.meta.url), 'utf8');

/** The packages that the programs import, by where they are installed. */
const PACKAGES = {
  '@segment/analytics-node': 'segment-analytics-node-3.1.0',
  '@segment/analytics-next': '@segment/analytics-next',
  'posthog-js': 'posthog-js',
};

const stack = new AsyncDisposableStack();
let tenant: Tenant;
let folder: string;

beforeAll(async () => {
  folder = stack.use(await makeTempDir()).path;
  tenant = await takeTenant('firstprograms');
  for (const [name, installed] of Object.entries(PACKAGES)) {
    const place = join(folder, 'node_modules', name);
    await mkdir(dirname(place), { recursive: true });
    await symlink(join(NPM_FOLDER, 'node_modules', installed), place);
  }
});
afterAll(() => stack.disposeAsync());

const environment = () => ({ PATH: process.env['PATH'], SLUICE_KEY: tenant.key });

/** Runs a program with an interpreter, and returns what it prints. */
async function runFile(interpreter: string, name: string, program: string): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, program);
  const { stdout, stderr } = await run(interpreter, [file], { env: environment() });
  expect(stderr).toBe('');
  return stdout;
}

const runNode = (program: string) => runFile(process.execPath, 'send.mjs', program);
const runPython = (program: string) => runFile(pythonOf('segment-2.4.0'), 'send.py', program);
const runShell = (program: string) => runFile('/bin/sh', 'send.sh', program);

/** Opens a page in Chromium, and waits until it has had an event accepted. */
async function openPage(files: Readonly<Record<string, string>>): Promise<void> {
  using _host = serveHost('app.localhost', (request, response) => {
    const name = (request.url ?? '/').slice(1) || 'index.html';
    const type = name.endsWith('.html') ? 'text/html' : 'text/javascript';
    response.setHeader('content-type', `${type}; charset=utf-8`).end(files[name] ?? '');
  });
  await using context = await (await sharedBrowser()).newContext();
  const page = await context.newPage();
  const errors: unknown[] = [];
  page.on('pageerror', (error) => errors.push(error));
  await page.goto('http://app.localhost/');
  await until('an event to be stored', isStored);
  expect(errors).toEqual([]);
}

/** Bundles a program for a page, as its reader would. */
async function openBundled(program: string): Promise<void> {
  const input = join(folder, 'page.js');
  await writeFile(input, program);
  const { output } = await build({
    input,
    platform: 'browser',
    output: { format: 'esm' },
    write: false,
    logLevel: 'silent',
  });
  const files = Object.fromEntries(output.map((file) => [file.fileName, 'code' in file ? file.code : '']));
  const page = '<!doctype html><link rel="icon" href="data:,"><script type="module" src="/page.js"></script>';
  await openPage({ ...files, 'index.html': page });
}

/** The uuids of the events that were expected before. */
const seen = new Set<string>();

async function newEvents() {
  const { body } = await tenant.get<EventPage>('/events?type=track&total=none');
  // posthog-js sends events of its own, too.
  return body.results.filter(({ uuid, event }) => !seen.has(uuid) && !event.startsWith('$'));
}

const isStored = async () => (await newEvents()).length > 0;

/** Expects that a program has sent one event with a plan, and returns it. */
async function expectSent(program: string, start: (program: string) => Promise<unknown>) {
  await start(program.replaceAll('http://localhost:4000', tenant.services['ingest-api'].url));
  await until('an event to be stored', isStored);
  await tenant.drained();
  const events = await newEvents();
  for (const { uuid } of events) seen.add(uuid);
  expect(events.map(({ properties }) => properties['plan'])).toEqual(['pro']);
  return events[0];
}

/** Returns the first block of a language below a heading of the page. */
function programOf(heading: string, language: string): string {
  const [, section = ''] = text.split(`## ${heading}\n`);
  const blocks = [...section.matchAll(/^```(\w+)\n(.*?)^```$/gms)];
  return blocks.find(([, name]) => name === language)?.[2] ?? '';
}

const JANES = { userId: 'jane' };

test('the program of the page for Node sends', async () => {
  const program = programOf('I have a Node program', 'js');
  expect(await expectSent(program, runNode)).toMatchObject({ ...JANES, event: 'signed_up_in_node' });
});

test('the program of the page for Python sends', async () => {
  const program = programOf('I have a Python program', 'python');
  expect(await expectSent(program, runPython)).toMatchObject({ ...JANES, event: 'signed_up_in_python' });
});

test('the page for a browser sends', async () => {
  const program = programOf('I have a page in a browser', 'html').replace('sk_…', tenant.key);
  const event = await expectSent(program, (page) => openPage({ 'index.html': page }));
  expect(event).toMatchObject({ event: 'page_opened_in_browser', userId: null, anonymousId: expect.any(String) });
});

test('the command for any other program sends, and prints what the page says', async () => {
  const heading = 'I have another program';
  const event = await expectSent(programOf(heading, 'sh'), async (program) => {
    expect(JSON.parse(await runShell(program))).toEqual(JSON.parse(programOf(heading, 'json')));
  });
  expect(event).toMatchObject({ ...JANES, event: 'signed_up' });
});

const STARTS: Readonly<Record<string, (program: string) => Promise<unknown>>> = {
  curl: (program) => run('/bin/sh', ['-c', program], { env: environment() }),
  node: runNode,
  python: runPython,
  browser: (page) => openPage({ 'index.html': page }),
  segment: openBundled,
  // Otherwise posthog-js sends nothing from a browser without windows, which it takes for a robot.
  posthog: (program) => openBundled(program.replace('{ api_host', '{ opt_out_useragent_filter: true, api_host')),
};

test.each(firstPrograms('', '').map(({ name }) => name))("the console's program for %s sends", async (name) => {
  const programs = firstPrograms(tenant.services['ingest-api'].url, tenant.key);
  const program = programs.find((one) => one.name === name)?.text ?? '';
  const event = await expectSent(program, STARTS[name] as (program: string) => Promise<unknown>);
  const isOfJane = name !== 'segment' && name !== 'posthog';
  expect(event).toMatchObject({ event: 'signed_up', ...(isOfJane && { ...JANES, groupId: 'acme' }) });
});
