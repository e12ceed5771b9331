import { expect, test } from 'vitest';
import { seededRandom } from '../random.ts';
import { LIMITS, type LimitId } from './limits.ts';
import { build, DOORS, productsOf, SINGLES, singlesOf } from './product.ts';

/** Limits at which no request of the generator stands, and why. */
const NOT_WALKED: Partial<Record<LimitId, string>> = {
  arrival: 'takes a minute: slow-bodies.test.ts',
  bodySpeed: 'takes seconds: slow-bodies.test.ts',
  faults: 'each refusal names its faults; post-user-groups.service.test.ts counts them',
  posthogEventBody: 'a batch of calls reaches the same code at its own limit: posthog.service.test.ts',
  posthogBatchBody: 'the limit of all bodies is lower: posthog.service.test.ts',
  posthogRate: 'takes seconds: posthog-rate.service.test.ts',
  sqlBytes: 'names with dots and long values go beyond it, and where it lies depends on the query',
  valueCharacters: 'long values go beyond it, and how they are encoded depends on the query',
  sampleEvents: 'a property of what is stored: menus-limits.service.test.ts',
  sampleCharacters: 'a property of what is stored: menus-limits.service.test.ts',
  sampleEntries: 'a property of what is stored: menus-limits.service.test.ts',
  sampleNames: 'a property of what is stored: menus-limits.service.test.ts',
  listedName: 'a property of what is stored: menus-limits.service.test.ts',
  queries: 'each round has as many at once as its connections',
  reports: 'each round has as many at once as its connections',
  queryTime: 'a property of the machine',
  queryMemory: 'a property of what is stored',
  statementBody: 'needs an account of its own: hostile-sql.service.test.ts',
  statement: 'needs an account of its own: hostile-sql.service.test.ts',
  statementParams: 'needs an account of its own: hostile-sql.service.test.ts',
  statementParam: 'needs an account of its own: hostile-sql.service.test.ts',
  views: 'needs an account of its own: views-api.service.test.ts',
  dashboards: 'needs an account of its own: views-api.service.test.ts',
  dashboardTiles: 'needs an account of its own: views-api.service.test.ts',
  dashboardLinks: 'needs an account of its own: views-api.service.test.ts',
  viewBody: 'needs an account of its own: views-api.service.test.ts',
  viewName: 'needs an account of its own: views-api.service.test.ts',
  viewParameters: 'needs an account of its own: views-api.service.test.ts',
  viewParameter: 'needs an account of its own: views-api.service.test.ts',
  webhooks: 'needs an account of its own: webhooks-api.service.test.ts',
  webhookBody: 'needs an account of its own: webhooks-api.service.test.ts',
  webhookUrl: 'needs an account of its own: webhooks-api.service.test.ts',
  webhookFilters: 'needs an account of its own: webhooks-api.service.test.ts',
  webhookFilter: 'needs an account of its own: webhooks-api.service.test.ts',
  webhookEvents: 'a property of what is stored: webhook-failures.slow.test.ts',
  webhookBytes: 'a property of what is stored: webhook-failures.slow.test.ts',
  webhookTime: 'a property of a receiver: http-sender.test.ts',
  webhookResponse: 'a property of a receiver: http-sender.test.ts',
  webhookFailing: 'a property of a receiver: webhook-pauses.slow.test.ts',
  webhookLog: 'a property of a receiver: webhook-takeover.slow.test.ts',
  keys: 'changes the keys of the product: keys-api.service.test.ts',
  keyBody: 'changes the keys of the product: keys-api.service.test.ts',
  statementSelects: 'needs an account of its own: statement-size.service.test.ts',
  statementJoins: 'needs an account of its own: statement-size.service.test.ts',
  statementWindows: 'needs an account of its own: statement-size.service.test.ts',
  statementCube: 'needs an account of its own: statement-size.service.test.ts',
  statementParts: 'needs an account of its own: statement-size.service.test.ts',
  statementList: 'needs an account of its own: statement-size.service.test.ts',
  statementParameter: 'needs an account of its own: statement-size.service.test.ts',
  statementRows: 'needs an account of its own: hostile-sql.service.test.ts',
};

test('the generator takes each limit of the table, or this test says why not', () => {
  const walked = new Set<string>(Object.values(DOORS).flatMap(({ limits }) => limits));
  const expected = Object.keys(LIMITS).filter((limit) => !(limit in NOT_WALKED));
  expect([...walked].toSorted()).toEqual(expected.toSorted());
});

test('the seeds that follow one another take each limit at each level at each door', () => {
  const taken = new Set<string>();
  for (let seed = 1_000; taken.size < SINGLES.length && seed < 1_000 + SINGLES.length; seed += 1) {
    for (const single of singlesOf(seed)) taken.add(JSON.stringify(single));
    expect(taken.size).toBe(Math.min((seed - 999) * singlesOf(seed).length, SINGLES.length));
  }
  expect(taken.size).toBe(SINGLES.length);
});

test('a seed has the same requests each time, but for the timestamps that lie ahead', () => {
  for (let seed = 0; seed < 2; seed += 1) {
    const products = productsOf(seed, seededRandom(seed));
    expect(productsOf(seed, seededRandom(seed))).toEqual(products);
    for (const product of products.filter(
      ({ corners }) => !corners.some(({ limit }) => limit === 'ahead' || limit === 'position'),
    )) {
      expect(build(product)).toEqual(build(product));
    }
  }
});
