import { expect } from 'vitest';
import { isAllowedFunction } from '../sql/allowed-functions.ts';
import type { Outcome } from './hostile-sources.ts';
import { SPELLINGS } from './spelled-functions.ts';
import type { SqlService } from './sql-service.ts';

/** What became of a statement. */
export interface StatementResponse {
  readonly outcome: Outcome | string;
  readonly text: string;
}

export async function outcomeOf(service: SqlService, sql: string, params: object = {}): Promise<StatementResponse> {
  const { status, text } = await service.post({ sql, params, format: 'ndjson' });
  if (status === 200) return { outcome: 'own', text };
  const { code, errors } = JSON.parse(text);
  if (code === 'invalid_sql') return { outcome: errors[0].code === 'not_allowed' ? 'not_allowed' : 'invalid', text };
  if (code === 'query_too_expensive') return { outcome: 'expensive', text };
  return { outcome: code === 'invalid_request' ? 'malformed' : `${status} ${code}`, text };
}

/** Runs a statement as the administrator, and returns the values of its first column, or the error as the only one. */
export async function askEngine({ clickHouseUrl }: SqlService, sql: string): Promise<string[]> {
  const response = await fetch(`${clickHouseUrl}/?database=test_sql_sql`, { method: 'POST', body: sql });
  const rows = (await response.text()).trimEnd().split('\n');
  return response.ok ? rows : [rows.join('\n')];
}

/** Adds a function that an operator has made. */
export async function addOwnFunction(service: SqlService): Promise<void> {
  expect(await askEngine(service, 'CREATE OR REPLACE FUNCTION of_an_operator AS x -> x')).toEqual(['']);
}

/** Returns what the errors of a statement with these expressions say. */
export async function errorsOf(service: SqlService, sql: string, params: object = {}): Promise<string> {
  const { outcome, text } = await outcomeOf(service, sql, params);
  return outcome === 'not_allowed' ? JSON.stringify(JSON.parse(text).errors) : `${outcome}: ${text}`;
}

/** Expects that each function which the engine knows and which is not on the list is refused when it is spelled so. */
export async function expectRefusedAs(service: SqlService, spelling: string): Promise<void> {
  const spelled = SPELLINGS[spelling];
  if (!spelled) throw new Error(`nothing is spelled as ${spelling}`);
  const known = await askEngine(service, 'SELECT name FROM system.functions');
  const refused = known.filter((name) => !isAllowedFunction(name));
  expect(refused).toEqual(expect.arrayContaining(['file', 'hostName', 'estimateCompressionRatio', 'of_an_operator']));
  // As many as one response names.
  const batches = Array.from({ length: Math.ceil(refused.length / 20) }, (_, i) => refused.slice(20 * i, 20 * i + 20));
  await Promise.all(
    batches.map(async (batch) => {
      const params = Object.fromEntries(batch.map((name, index) => [`f${index}`, name]));
      const sql = `SELECT ${batch.map(spelled).join()}`;
      const errors = await errorsOf(service, sql, spelling === 'a parameter' ? params : {});
      expect(errors, sql).toMatch(/^\[/);
      const named = /^a (call|name|parameter$|combinator|merge)/.test(spelling);
      expect(batch.filter((name) => named && !errors.includes(name))).toEqual([]);
    }),
  );
}
