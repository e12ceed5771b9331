import { PINNED_SETTINGS } from '@sluice/shared/clickhouse/settings';

/**
 * Runs a statement, and returns its result as text.
 *
 * @param options.parameters the values of `{name:Type}` in it
 * @throws {Error} with ClickHouse's message
 */
export async function readClickHouse(
  url: string,
  sql: string,
  options: {
    readonly database?: string;
    readonly parameters?: Readonly<Record<string, string>>;
    readonly signal?: AbortSignal;
  } = {},
): Promise<string> {
  const { database = 'default', parameters = {}, signal = null } = options;
  const query = new URLSearchParams({ ...PINNED_SETTINGS, database });
  for (const [name, value] of Object.entries(parameters)) query.set(`param_${name}`, value);
  const response = await fetch(`${url}/?${query}`, { method: 'POST', body: sql, signal });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return text.trim();
}
