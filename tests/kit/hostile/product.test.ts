import { configSchema as ingestSchema } from '@sluice/ingest-api/config';
import { ingestDocument } from '@sluice/ingest-api/openapi';
import { readDocument } from '@sluice/query-api/testing/document';
import type { OpenApiDocument } from '@sluice/shared/http/openapi';
import { createDocumentChecker, withoutNames } from '@sluice/shared/testing/openapi';
import { submissionSchemas } from '@sluice/submissions/reading/submission';
import { configSchema as trenchSchema } from '@sluice/trench-api/config';
import { trenchDocument } from '@sluice/trench-api/openapi';
import { expect, test } from 'vitest';
import { seededRandom } from '../random.ts';
import type { HostileService } from './door.ts';
import { LIMITS, type LimitId } from './limits.ts';
import { build, DOORS, productsOf, ROUTES, SINGLES, singlesOf } from './product.ts';

/** Limits at which no request of the generator stands, and why. */
const NOT_WALKED: Partial<Record<LimitId, string>> = {
  arrival: 'takes a minute: slow-bodies.test.ts',
  bodySpeed: 'takes seconds: slow-bodies.test.ts',
  faults: 'each refusal names its faults; post-user-groups.service.test.ts counts them',
  posthogBatchBody: 'the limit of all bodies is lower: posthog.service.test.ts',
  posthogRate: 'takes seconds: posthog-rate.slow.test.ts',
  sqlBytes: 'names with dots and long values go beyond it, and where it lies depends on the query',
  valueCharacters: 'long values go beyond it, and how they are encoded depends on the query',
  sampleEvents: 'a property of what is stored: menus-limits.service.test.ts',
  sampleOwners: 'a property of what is stored: owners.slow.test.ts',
  sampleCharacters: 'a property of what is stored: menus-limits.service.test.ts',
  sampleEntries: 'a property of what is stored: menus-limits.service.test.ts',
  sampleNames: 'a property of what is stored: menus-limits.service.test.ts',
  listedName: 'a property of what is stored: menus-limits.service.test.ts',
  queries: 'each round has as many at once as its connections',
  reports: 'each round has as many at once as its connections',
  queryTime: 'a property of the machine',
  queryMemory: 'a property of what is stored',
  views: 'takes as many of them: views-api.service.test.ts',
  dashboards: 'takes as many of them: views-api.service.test.ts',
  dashboardLinks: 'takes as many of them: views-api.service.test.ts',
  viewRows: 'a property of what is stored: sql-views.service.test.ts',
  segments: 'takes as many of them: segments.slow.test.ts',
  segmentName: 'a path, which differs from request to request: segments.slow.test.ts',
  webhooks: 'takes as many of them: webhooks-api.service.test.ts',
  alerts: 'takes as many of them: alerts.service.test.ts',
  digests: 'takes as many of them: alerts.service.test.ts',
  webhookEvents: 'a property of what is stored: webhook-failures.night.test.ts',
  webhookBytes: 'a property of what is stored: webhook-failures.slow.test.ts',
  webhookTime: 'a property of a receiver: http-sender.test.ts',
  webhookResponse: 'a property of a receiver: http-sender.test.ts',
  webhookFailing: 'a property of a receiver: webhook-pauses.slow.test.ts',
  webhookLog: 'a property of a receiver: webhook-takeover.night.test.ts',
  keys: 'takes as many of them: keys-api.service.test.ts',
  statementSelects: 'a property of a statement: statement-size.service.test.ts',
  statementJoins: 'a property of a statement: statement-size.service.test.ts',
  statementWindows: 'a property of a statement: statement-size.service.test.ts',
  statementCube: 'a property of a statement: statement-size.service.test.ts',
  statementParts: 'a property of a statement: statement-size.service.test.ts',
  statementList: 'a property of a statement: statement-size.service.test.ts',
  statementParameter: 'a property of a statement: statement-size.service.test.ts',
  statementRows: 'a property of what is stored: hostile-sql.slow.test.ts',
};

/** Routes to which no door leads, and why. */
const WITHOUT_DOOR: readonly string[] = [
  // The rounds are judged by it: it forgets how long the event loop was blocked.
  'GET /metrics',
];

const ingest = ingestSchema.parse({ KAFKA_BROKERS: 'kafka:9092', API_KEYS_FILE: 'keys.json' });
const schemas = submissionSchemas({
  ...{ eventsMax: ingest.EVENTS_PER_SUBMISSION_MAX, propertiesMax: ingest.PROPERTIES_PER_SUBMISSION_MAX },
  now: Date.now,
});
const urls = { INGEST_URL: 'http://ingest:4000', QUERY_URL: 'http://query:4001' };
const DOCUMENTS: Readonly<Record<HostileService, OpenApiDocument>> = {
  'ingest-api': ingestDocument(ingest, schemas),
  'query-api': await readDocument(),
  'trench-api': trenchDocument(trenchSchema.parse(urls)),
};

test('each route of the OpenAPI documents has a door, and no door leads nowhere', () => {
  const documented = Object.entries(DOCUMENTS).flatMap(([service, document]) =>
    [...createDocumentChecker(document).operations.keys()]
      .filter((route) => !WITHOUT_DOOR.includes(route))
      .map((route) => withoutNames(`${service} ${route}`)),
  );
  expect(ROUTES.map(withoutNames).toSorted()).toEqual(documented.toSorted());
});

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
