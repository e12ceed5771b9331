import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { settingsOfFirst } from '@sluice/shared/clickhouse/settings';

/** How often a change is tried: each time it is not stored, another one was. */
const TRIES_MAX = 50;

/** Says which row of a register is replaced: that of an id with a version, its time in microseconds since 1970. */
export interface Replaced {
  readonly id: string;
  readonly version: number;
}

/** Returns the version of the row that replaces another one: higher, also when the clock was set back. */
export function versionAfter({ version }: Replaced): number {
  return Math.max(Date.now() * 1_000, version + 1);
}

/**
 * Inserts a row that replaces another one, unless something else has replaced that. So no change is made to a state that is no longer
 * the newest. Whether it was stored is read afterwards.
 *
 * @throws ClickHouse's errors
 */
export async function insertInPlaceOf(
  { id, version }: Replaced,
  client: ClickHouseClient,
  table: string,
  row: Readonly<Record<string, unknown>>,
  signal?: AbortSignal,
): Promise<void> {
  await client.insert({
    ...{ table, values: [row], format: 'JSONEachRow' },
    clickhouse_settings: settingsOfFirst(`${id} ${version}`),
    ...(signal && { abort_signal: signal }),
  });
}

/**
 * Changes what is stored, again and again until a read finds the change. Of changes at once each is made to what the others have left.
 *
 * @param change stores the change of a state in its place; returns false, and stores nothing, if the state has the change
 * @returns the state with the change; undefined if there is none
 * @throws what `read` and `change` throw
 */
export async function changeStored<State>(
  read: () => Promise<State | undefined>,
  change: (state: State) => Promise<boolean>,
): Promise<State | undefined> {
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const state = await read();
    if (state === undefined || !(await change(state))) return state;
  }
  throw new Error('others change the same all the time');
}
