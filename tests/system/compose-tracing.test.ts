import { execFile } from 'node:child_process';
import { access, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { parse } from 'yaml';

const ROOT = new URL('../../', import.meta.url);
const REGISTER = 'packages/shared/src/tracing/register.mjs';

test('docker-compose.tracing.yml, the chart and the documents import the file that the image and the repository have', async () => {
  await access(new URL(REGISTER, ROOT));
  const { services } = parse(await readFile(new URL('docker-compose.tracing.yml', ROOT), 'utf8'));
  const NODE_OPTIONS = `--import=/sluice/${REGISTER}`;
  expect(Object.keys(services)).toEqual(['ingest-api', 'writer', 'query-api']);
  for (const { environment } of Object.values<{ environment: object }>(services)) {
    expect(environment).toMatchObject({ NODE_OPTIONS });
  }
  const chart = await readFile(new URL('deploy/helm/sluice/templates/_environment.tpl', ROOT), 'utf8');
  expect(chart.match(/--import=\S+\.mjs/g)).toEqual([NODE_OPTIONS]);
  const text = await readFile(new URL('docs/operate/tracing.md', ROOT), 'utf8');
  expect(text.match(/--import=\S+\.mjs/g)).toEqual([NODE_OPTIONS, `--import=$PWD/${REGISTER}`]);
});

test('programs other than a service load no SDK, and need none', async () => {
  const register = fileURLToPath(new URL(REGISTER, ROOT));
  const script = "console.log(typeof globalThis[Symbol.for('opentelemetry.js.api.1')])";
  const { stdout } = await promisify(execFile)(process.execPath, [`--import=${register}`, '-e', script]);
  expect(stdout.trim()).toBe('undefined');
});
