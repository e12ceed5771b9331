import { parse, requestsTo, runPropertiesCommand } from '@sluice/cli/properties/properties-command';
import { anEvent, type QueryService, startQuery } from '@sluice/query-api/testing/query-service';
import { WEBHOOKS_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';

let query: QueryService;
let url: URL;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), WEBHOOKS_ACCOUNT);
  url = new URL(await query.app.listen({ port: 0, host: '127.0.0.1' }));
});
afterAll(() => query.stop());

/** Runs the command with a key, and returns its exit code and what it has printed. */
async function run(line: string, key = 'admin-a', reply = false): Promise<readonly [number, ...string[]]> {
  const lines: string[] = [];
  const terminal = { print: (text: string) => void lines.push(text), confirm: async () => reply };
  const code = await runPropertiesCommand(parse(line.split(' ')), requestsTo(url, key), terminal);
  return [code, ...lines];
}

test('an admin sees what is proposed, declares it, watches its columns being filled, and withdraws it', async () => {
  expect(await run('list')).toEqual([0, 'no property is fast']);
  expect(await run('proposed')).toEqual([0, 'reports have read no property']);
  expect(await run('progress')).toEqual([0, 'there are no events']);
  const properties = '{"plan":"pro","amount":5}';
  await query.store('a', [anEvent({ properties }), anEvent({ properties, timestampMs: Date.UTC(2026, 0, 1) })]);
  const range = 'startDate=2026-01-01&endDate=2026-04-01&interval=none';
  await query.get(`/events/series?${range}&groupBy=properties.plan&properties.a.b=1`);
  const [code, ...proposed] = await run('proposed');
  expect([code, ...proposed.map((line) => line.replaceAll(/\d[\d.,]* MB/g, 'N MB'))]).toEqual([
    0,
    expect.stringMatching(/^property +reads +read +columns$/),
    expect.stringMatching(/^a\.b +1 +N MB +cannot be fast$/),
    expect.stringMatching(/^plan +1 +N MB +may be fast$/),
  ]);
  expect(await run('declare plan')).toEqual([0, 'plan']);
  expect(await run('declare amount plan')).toEqual([0, 'plan', 'amount']);
  expect((await run('proposed')).at(-1)).toMatch(/^plan .* is fast$/);
  expect(await run('withdraw seats --yes')).toEqual([1, 'not fast: seats; nothing was withdrawn']);
  expect((await run('withdraw plan')).at(-1)).toBe('nothing was withdrawn');
  expect((await run('withdraw plan', 'admin-a', true)).slice(0, 1)).toEqual([0]);
  expect(await run('list')).toEqual([0, 'amount']);
  expect((await run('withdraw amount --yes')).at(-1)).toBe('no property is fast now');
});

test('who may not declare is told why', async () => {
  await expect(run('declare plan', 'a')).rejects.toThrow('403 missing_scope');
  await expect(run('declare a.b')).rejects.toThrow(/400 invalid_request.*must have no dot/);
});
