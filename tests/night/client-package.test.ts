import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';

const ROOT = join(import.meta.dirname, '../..');
const PACKAGE = join(ROOT, 'packages/client');

/** The Node.js that runs npm, where it is another one than that of this test: the package promises to run on version 20. */
const NODE = process.env['npm_node_execpath'] ?? process.execPath;

const README = await readFile(join(PACKAGE, 'README.md'), 'utf8');

let folder: string;
let pipeline: Pipeline;

async function run(command: string, args: readonly string[], cwd = folder): Promise<string> {
  const { stdout } = await promisify(execFile)(command, args, { cwd }).catch((error) => {
    throw new Error(`${command} ${args.join(' ')}: ${error.stdout}${error.stderr}`);
  });
  return stdout;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-client-'));
  await writeFile(join(folder, 'package.json'), '{ "type": "module", "private": true }');
  await run('npm', ['pack', '--silent', '--pack-destination', folder], PACKAGE);
  const tarball = (await readdir(folder)).find((name) => name.endsWith('.tgz')) ?? '';
  // It has no dependencies, so nothing has to be downloaded.
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', '--silent', `./${tarball}`]);
  pipeline = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'clientpackage',
  });
});
afterAll(async () => {
  await pipeline?.stop();
  await rm(folder, { recursive: true, force: true });
});

test('the package holds the built files, and installs nothing else', async () => {
  expect(await readdir(join(folder, 'node_modules'))).toEqual(['.package-lock.json', '@sluice']);
  const files = await readdir(join(folder, 'node_modules/@sluice/client'), { recursive: true });
  expect(files.filter((name) => !name.endsWith('.d.ts')).sort()).toEqual(
    ['LICENSE', 'README.md', 'dist', 'dist/client.js', 'dist/offline.js', 'dist/query.js', 'package.json'].sort(),
  );
});

const CONSUMER = `
import { createClient, type ClientError } from '@sluice/client';
import { offlineStore } from '@sluice/client/offline';
import { createQueryClient, QueryError, type Event } from '@sluice/client/query';

const errors: ClientError[] = [];
await using client = createClient<{ signed_up: { plan: string } }>({
  url: 'http://localhost:4000',
  key: 'key',
  store: offlineStore(),
  onError: (error) => errors.push(error),
});
client.track('signed_up', { plan: 'pro' }, { userId: 'jane' });
// @ts-expect-error the plan is a string
client.track('signed_up', { plan: 1 });
const left: number = await client.flush({ timeoutMs: 1_000 });
const query = createQueryClient({ url: 'http://localhost:4001' });
try {
  for await (const event of query.events({ event: 'signed_up', 'properties.plan': 'pro', 'userId[in]': 'a,b' })) {
    const { userId }: Event = event;
    console.log(left, userId?.length, event.properties['plan']);
  }
  // @ts-expect-error there is no such parameter
  query.users({ colour: 'red' });
} catch (error) {
  if (error instanceof QueryError) console.log(error.code);
}
`;

const COMPILERS = { 'TypeScript 7': ROOT, 'TypeScript 5.9': PACKAGE };

test.each(
  Object.entries(COMPILERS).flatMap(([version, from]) =>
    (['nodenext', 'bundler'] as const).map((resolution) => [version, resolution, from] as const),
  ),
)('%s finds the types with moduleResolution %s', async (_, moduleResolution, from) => {
  await checkTypes(CONSUMER, moduleResolution, from);
});

async function checkTypes(code: string, moduleResolution: 'nodenext' | 'bundler', from: string): Promise<void> {
  await writeFile(join(folder, 'consumer.ts'), code);
  const compilerOptions = {
    ...{ moduleResolution, module: moduleResolution === 'bundler' ? 'esnext' : 'nodenext', target: 'es2022' },
    ...{ strict: true, exactOptionalPropertyTypes: true, noPropertyAccessFromIndexSignature: true, noEmit: true },
    lib: ['es2022', 'dom', 'dom.asynciterable'],
    types: [],
  };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['consumer.ts'] }));
  await run(process.execPath, [join(from, 'node_modules/typescript/bin/tsc'), '-p', '.']);
}

const typed = [...README.matchAll(/^```ts\n(.*?)\n```$/gms)].map(([, code = '']) => code);

test('typed examples of the README have no faults', async () => {
  expect(typed.length).toBeGreaterThan(1);
  for (const code of typed) await checkTypes(code, 'nodenext', ROOT);
});

/** Runs a program in the project that has the package, on the Node.js that runs npm. */
async function program(code: string, key = pipeline.key): Promise<string> {
  const { services } = pipeline;
  const here = code
    .replaceAll('https://events.example.com', services['ingest-api'].url)
    .replaceAll('https://queries.example.com', services['query-api'].url);
  const file = join(folder, 'program.js');
  await writeFile(file, `const key = ${JSON.stringify(key)};\n${here}`);
  return await run(NODE, [file]);
}

test('the package sends and reads on the Node.js that runs npm', async () => {
  const sent = await program(`
import { createClient } from '@sluice/client';
const client = createClient({ url: 'https://events.example.com/', key });
for (let index = 0; index < 1_500; index += 1) client.track('counted', { index, text: 'ü'.repeat(20) }, { userId: 'u' + (index % 3) });
client.group('acme', { plan: 'pro' }, { userId: 'u1' });
client.identify('u&/ 1', { plan: 'a&b' });
console.log(await client.close(), process.version);
`);
  expect(sent).toMatch(/^0 v(2\d|[3-9]\d)\./);
  await pipeline.settled(1_502);
  await pipeline.drained();
  const read = await program(`
import { createQueryClient, QueryError } from '@sluice/client/query';
const query = createQueryClient({ url: 'https://queries.example.com', key });
const seen = [];
for await (const event of query.events({ event: 'counted', orderByDirection: 'ASC' })) seen.push(event.properties.index);
console.log(seen.length, seen.every((index, at) => index === at));
for await (const user of query.users({ limit: 1 })) console.log('user', user.foreignId);
for await (const user of query.users({ 'properties.plan': 'a&b' })) console.log('found', user.foreignId);
for await (const { foreignUserGroupId, properties } of query.organizations()) console.log(foreignUserGroupId, properties.plan);
console.log((await query.user('u&/ 1')).properties.plan, await query.user('nobody'), await query.organization('none'));
console.log((await query.eventPage({ 'properties.index[lt]': '5', limit: 2, userId: undefined })).total);
const refused = await query.eventPage({ colour: 'red' }).catch((error) => error);
console.log(refused instanceof QueryError, refused.status, refused.code);
const unknown = createQueryClient({ url: 'https://queries.example.com', key: 'wrong' });
await unknown.users().next().catch(({ status, code }) => console.log(status, code));
`);
  expect(read.split('\n')).toEqual([
    '1500 true',
    ...['user u&/ 1', 'user u0', 'user u1', 'user u2', 'found u&/ 1', 'acme pro'],
    ...['a&b undefined undefined', '5', 'true 400 invalid_request', '401 unauthorized', ''],
  ]);
});

const examples = [...README.matchAll(/^```js\n(.*?)\n```(?:\n\n```text\n(.*?)\n```)?$/gms)].map(
  ([, code = '', output = '']) => [code, output] as const,
);

test('examples of the README run, and print what it says', async () => {
  expect(examples.length).toBeGreaterThan(2);
  const key = await pipeline.addKey('readme');
  for (const [code, output] of examples) {
    expect((await program(code, key)).trimEnd()).toBe(output);
    await pipeline.drained();
  }
});
