import { WEBHOOKS_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, inject, test } from 'vitest';
import { type QueryService, startQuery } from '../../testing/query-service.ts';
import { send, shareDashboard } from '../../testing/views.ts';
import { ConsoleDocuments } from './console-documents.ts';
import { LinkKeys } from './link-keys.ts';
import type { Link } from './view.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), WEBHOOKS_ACCOUNT);
});
afterAll(() => query.stop());

test('what another instance creates and revokes holds here too, after seconds', async () => {
  const { dashboard, key, link } = await shareDashboard(query, 'g');
  const keys = new LinkKeys(new ConsoleDocuments<Link>(query.clickHouse, 'link'));
  await eventually(() => keys.find(key)).toMatchObject({ workspace: 'g', dashboard: dashboard.split('/')[2] });
  await send(query, 'DELETE', link, undefined, 'admin-g');
  await eventually(() => keys.find(key)).toBeUndefined();
});
