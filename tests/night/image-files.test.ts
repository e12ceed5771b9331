import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findFreePorts } from '@sluice/local-stack/ports';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, test } from 'vitest';
import { makeImageFiles } from '../kit/image-files.ts';

const ENVIRONMENTS = {
  'ingest-api': { KAFKA_BROKERS: '127.0.0.1:9', API_KEYS_FILE: '/nonexistent' },
  writer: { KAFKA_BROKERS: '127.0.0.1:9', CLICKHOUSE_URL: 'http://127.0.0.1:9' },
  'query-api': { CLICKHOUSE_URL: 'http://127.0.0.1:9', API_KEYS_FILE: '/nonexistent' },
  'trench-api': { INGEST_URL: 'http://127.0.0.1:9', QUERY_URL: 'http://127.0.0.1:9' },
};

const OF_WRITER = ['writer', 'dead-letters', 'migrations', 'backup', 'restore', 'retention'];
const COMMANDS = {
  'ingest-api': ['keys'],
  writer: ['keys', ...OF_WRITER],
  'query-api': ['keys'],
  'trench-api': ['keys'],
};

test.each(Object.keys(ENVIRONMENTS) as (keyof typeof ENVIRONMENTS)[])(
  'the files of the image of %s are all that the service and its commands need',
  async (name) => {
    await using folder = await makeTempDir();
    await makeImageFiles(name, folder.path);
    const [port] = await findFreePorts(1);
    const env = { PATH: process.env['PATH'], PORT: String(port), NODE_ENV: 'production', ...ENVIRONMENTS[name] };
    const options = { cwd: folder.path, env };
    for (const command of COMMANDS[name]) {
      const run = await promisify(execFile)(process.execPath, ['packages/cli/src/main.ts', command, '--help'], options);
      expect(run.stdout).toContain(`Usage: sluice ${command}`);
    }
    // With what tracing needs as well.
    const args = ['--import=./packages/shared/src/tracing/register.mjs', `services/${name}/src/main.ts`];
    const service = spawn(process.execPath, args, { ...options, stdio: 'ignore' });
    const ended = once(service, 'exit');
    try {
      const get = (path: string) => fetch(`http://127.0.0.1:${port}${path}`);
      await eventually(() =>
        get('/livez').then(
          ({ status }) => status,
          () => 'not listening',
        ),
      ).toBe(200);
      expect((await get('/readyz')).status).toBe(503);
      expect(await (await get('/metrics')).text()).toContain('process_cpu_seconds_total');
      if (name !== 'writer') {
        for (const file of ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png', 'start.js']) {
          expect((await get(`/docs/${file}`)).status, file).toBe(200);
        }
      }
    } finally {
      service.kill();
    }
    expect(await ended).toEqual([0, null]);
    const sbom = JSON.parse(await readFile(join(folder.path, 'sbom.cdx.json'), 'utf8'));
    const components = sbom.components.map((component: { name: string }) => component.name);
    expect(components).toEqual(expect.arrayContaining(['fastify', 'pino', 'prom-client']));
    expect(components).not.toContain('vitest');
  },
);
