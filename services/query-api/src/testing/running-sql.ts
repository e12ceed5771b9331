import { randomUUID } from 'node:crypto';
import type { SqlService } from './sql-service.ts';

export interface SqlAnswer {
  readonly status: number;
  readonly code: string | undefined;
  readonly requestId: string;
}

/** Sends a statement, and returns what became of it, whether or not its response is whole. */
export async function ask(service: SqlService, sql: string, workspace: string): Promise<SqlAnswer> {
  const requestId = randomUUID();
  const response = await service.app
    .inject({
      ...{ method: 'POST', url: '/queries', payload: { sql, format: 'ndjson' } },
      headers: { authorization: `Bearer sql-${workspace}`, 'x-request-id': requestId },
    })
    // One whose time is up after its first rows breaks off.
    .catch((error: Error) => {
      if (error.message !== 'response destroyed before completion') throw error;
    });
  const { statusCode, body } = response ?? { statusCode: 200, body: '' };
  return { status: statusCode, code: statusCode === 200 ? undefined : JSON.parse(body).code, requestId };
}

/** Returns how many statements of a request ClickHouse runs; of all requests by default. */
export async function running(service: SqlService, requestId = ''): Promise<number> {
  const query = `SELECT count() AS n FROM system.processes WHERE startsWith(query_id, {beginning:String})`;
  const query_params = { beginning: `query-api/sql/${requestId}` };
  const result = await service.clickHouse.query({ query, query_params, format: 'JSONEachRow' });
  return Number((await result.json<{ n: number }>())[0]?.n);
}

/** Returns how many slots of reports are held. */
export async function heldSlots(service: SqlService): Promise<number> {
  const { body } = await service.app.inject({ url: '/metrics' });
  return Number(/^sluice_queries\{pool="reports",state="running"\} (\d+)$/m.exec(body)?.[1]);
}
