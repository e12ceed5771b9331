import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { NPM_FOLDER, pythonOf } from '../kit/clients/installation.ts';
import { serveHost, sharedBrowser } from '../kit/clients/shared-browser.ts';
import type { EventPage } from '../kit/records.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

// The programs that docs/guide/producers.md begins with run as they are, but for the address.

const run = promisify(execFile);

const text = await readFile(new URL('../../docs/guide/producers.md', import.meta.url), 'utf8');

/** Returns the first block of a language below a heading. */
function programOf(heading: string, language: string): string {
  const [, section = ''] = text.split(`## ${heading}\n`);
  const blocks = [...section.matchAll(/^```(\w+)\n(.*?)^```$/gms)];
  return blocks.find(([, name]) => name === language)?.[2] ?? '';
}

let pipeline: Tenant;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-producers-'));
  pipeline = await takeTenant('producersdocs');
});
afterAll(() => rm(folder, { recursive: true }));

/** Runs a program with its address replaced, and expects that the event it tracks is stored for the user. */
async function expectStored(
  event: string,
  program: string,
  start: (program: string) => Promise<unknown>,
  user: string | null = 'jane',
) {
  expect(program).toContain(event);
  await start(program.replaceAll('http://localhost:4000', pipeline.services['ingest-api'].url));
  await pipeline.drained();
  const { body } = await pipeline.get<EventPage>(`/events?event=${event}`);
  expect(body.results.map(({ userId, properties }) => [userId, properties['plan']])).toEqual([[user, 'pro']]);
}

const environment = () => ({ PATH: process.env['PATH'], SLUICE_KEY: pipeline.key });

test('the program for Node sends', async () => {
  await mkdir(join(folder, 'node_modules', '@segment'), { recursive: true });
  const installed = join(NPM_FOLDER, 'node_modules', 'segment-analytics-node-3.1.0');
  await symlink(installed, join(folder, 'node_modules', '@segment', 'analytics-node'));
  await expectStored('signed_up_in_node', programOf('I have a Node program', 'js'), async (program) => {
    const file = join(folder, 'program.mjs');
    await writeFile(file, program);
    expect(await run(process.execPath, [file], { env: environment() })).toEqual({ stdout: '', stderr: '' });
  });
});

test('the program for Python sends', async () => {
  await expectStored('signed_up_in_python', programOf('I have a Python program', 'python'), (program) =>
    run(pythonOf('segment-2.4.0'), ['-c', program], { env: environment() }),
  );
});

test('the page for a browser sends', async () => {
  const start = async (program: string) => {
    const page = program.replace('sk_…', pipeline.key);
    using _page = serveHost('app.localhost', (_request, response) => {
      response.setHeader('content-type', 'text/html; charset=utf-8');
      response.end(page);
    });
    await using context = await (await sharedBrowser()).newContext();
    const opened = await context.newPage();
    const errors: unknown[] = [];
    opened.on('pageerror', (error) => errors.push(error));
    const accepted = opened.waitForResponse((response) => response.url().endsWith('/v1/track') && response.ok());
    await opened.goto('http://app.localhost/');
    await accepted;
    expect(errors).toEqual([]);
  };
  await expectStored('page_opened_in_browser', programOf('I have a page in a browser', 'html'), start, null);
});

test('the command for any other program sends, and prints what the page says', async () => {
  const heading = 'I have another program';
  await expectStored('signed_up', programOf(heading, 'sh'), async (program) => {
    const { stdout } = await run('sh', ['-c', program], { env: environment() });
    expect(JSON.parse(stdout)).toEqual(JSON.parse(programOf(heading, 'json')));
  });
});
