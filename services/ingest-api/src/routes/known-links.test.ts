import { Nobody } from '@sluice/submissions/reading/nobody';
import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { createIngestMetrics } from '../metrics.ts';
import { ANONYMOUS_IDS_MAX, KNOWN_MS, KnownLinks } from './known-links.ts';

const WORKSPACE = 'w';
const link = (anonymousId: string, userId = 'jane') => ({ anonymousId, userId });

function knownLinks(charactersMax?: number) {
  const clock = { ms: 0 };
  const metrics = createIngestMetrics(new Registry());
  const warnings: string[] = [];
  const logger = { warn: (_fields: object, text: string) => void warnings.push(text) };
  const known = new KnownLinks({
    ...{ nobody: new Nobody(['kiosk']), now: () => clock.ms, metrics, logger },
    ...(charactersMax !== undefined && { charactersMax }),
  });
  /** What a request needs rows for whose rows Kafka has then. */
  const send = (...links: ReturnType<typeof link>[]) => {
    const request = known.ofRequest(WORKSPACE);
    const needed = links.filter((one) => request.needsRow(one));
    request.remember();
    return needed.map(({ anonymousId }) => anonymousId);
  };
  const refused = async () => (await metrics.refusedLinks.get()).values[0]?.value;
  return { known, clock, send, refused, warnings };
}

test('a link is written once, by users and workspaces, and again after an hour', () => {
  const { known, clock, send } = knownLinks();
  expect(send(link('a'), link('a'), link('b'))).toEqual(['a', 'b']);
  expect(send(link('a'), link('c'))).toEqual(['c']);
  expect(send(link('a', 'bob'))).toEqual(['a']);
  expect(known.ofRequest('another').needsRow(link('a'))).toBe(true);
  clock.ms = KNOWN_MS;
  expect(send(link('a'))).toEqual(['a']);
  expect(send(link('a'))).toEqual([]);
});

test('whoever means nobody gets no row, and is not counted as refused', async () => {
  const { send, refused } = knownLinks();
  expect(send(link('kiosk'), link('a', 'Kiosk'), link('0'), link('b'))).toEqual(['b']);
  expect(await refused()).toBe(0);
});

test('a link that Kafka does not have is written again', () => {
  const { known, send } = knownLinks();
  expect(known.ofRequest(WORKSPACE).needsRow(link('a'))).toBe(true);
  expect(send(link('a'))).toEqual(['a']);
});

test('a user who was deleted is linked anew, also by what was accepted before and acknowledged after', () => {
  const { known, send } = knownLinks();
  send(link('a'), link('b'));
  const before = known.ofRequest(WORKSPACE);
  expect(before.needsRow(link('c'))).toBe(true);
  known.forget(WORKSPACE, 'jane');
  before.remember();
  expect(send(link('a'), link('c'))).toEqual(['a', 'c']);
});

test('a user has a thousand anonymous ids at most: further ones are refused, counted and logged once', async () => {
  const { send, refused, warnings } = knownLinks();
  const ids = Array.from({ length: ANONYMOUS_IDS_MAX + 5 }, (_, index) => `a${index}`);
  expect(send(...ids.map((id) => link(id)))).toHaveLength(ANONYMOUS_IDS_MAX);
  expect(send(link('one more'), link('a0'), link('another'))).toEqual([]);
  expect(send(link('one more', 'bob'))).toEqual(['one more']);
  expect(await refused()).toBe(7);
  expect(warnings).toHaveLength(1);
});

test('those who were named least recently are forgotten first', () => {
  const { send } = knownLinks(500);
  expect(send(link('a', 'one'))).toEqual(['a']);
  for (const user of ['two', 'three', 'four']) send(link('a', user));
  expect(send(link('a', 'four'))).toEqual([]);
  expect(send(link('a', 'one'))).toEqual(['a']);
});
