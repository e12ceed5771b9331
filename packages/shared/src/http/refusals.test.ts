import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { createLogger, type Logger } from '../base/log.ts';
import { setClockBack } from '../testing/clock.ts';
import { eventually } from '../testing/eventually.ts';
import { Problem } from './problem.ts';
import { createHttpServer } from './server.ts';

/** Creates a server whose routes fail, and returns it with the lines that it logs. */
function createFailingServer() {
  const lines: Record<string, unknown>[] = [];
  const registry = new Registry();
  const logger: Logger = createLogger('test', 'info', {
    write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>),
  });
  const app = createHttpServer({ logger, registry, readiness: () => [] });
  const cause = new Error('the broker is away');
  app.get('/busy', async () => {
    throw new Problem('overloaded', 'busy', { retryAfter: 1 });
  });
  app.get('/away', async () => {
    throw new Problem('event_log_unavailable', 'away', { retryAfter: 1, cause });
  });
  app.get('/broken', async () => {
    throw new TypeError('a bug');
  });
  return { app, registry, lines };
}

test('503s are warnings without a stack, one for each code; a 500 is an error with its stack', async () => {
  const { app, lines } = createFailingServer();
  for (let index = 0; index < 200; index += 1) {
    expect((await app.inject('/busy')).statusCode).toBe(503);
    expect((await app.inject('/away')).statusCode).toBe(503);
  }
  expect(lines.map(({ level, code, reason }) => [level, code, reason])).toEqual([
    ['warn', 'overloaded', 'busy'],
    ['warn', 'event_log_unavailable', 'the broker is away'],
  ]);
  expect(JSON.stringify(lines)).not.toContain('stack');
  await app.inject('/broken');
  await app.inject('/broken');
  const errors = lines.slice(2);
  expect(errors.map(({ level, code }) => [level, code])).toEqual([
    ['error', 'internal'],
    ['error', 'internal'],
  ]);
  for (const { err } of errors) expect((err as { stack: string }).stack).toContain('TypeError: a bug');
});

test('after five seconds 503s are logged again, with the number of those in between, also when the clock was set back', async () => {
  const { app, lines } = createFailingServer();
  const startedAt = performance.now();
  for (let index = 0; index < 30; index += 1) await app.inject('/busy');
  setClockBack();
  await eventually(
    async () => {
      await app.inject('/busy');
      return lines.length;
    },
    { interval: 500 },
  ).toBe(2);
  expect(Number(lines[1]?.['suppressed'])).toBeGreaterThanOrEqual(29);
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(4_990);
});

test('every refused request is counted by its code', async () => {
  const { app, registry } = createFailingServer();
  for (const url of ['/busy', '/busy', '/busy', '/away', '/broken', '/nothing', '/livez']) await app.inject(url);
  const counts = (await registry.metrics())
    .split('\n')
    .filter((line) => line.startsWith('sluice_http_refused_requests'));
  expect(counts.sort()).toEqual([
    'sluice_http_refused_requests_total{code="event_log_unavailable"} 1',
    'sluice_http_refused_requests_total{code="internal"} 1',
    'sluice_http_refused_requests_total{code="not_found"} 1',
    'sluice_http_refused_requests_total{code="overloaded"} 3',
  ]);
});
