import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { asUnavailable, IDENTITY_DEFAULT, type Identity } from '../../store/store.ts';

/** How long a statement may take, in milliseconds. */
const STATEMENT_MS_MAX = 10_000;

const NEWEST = `
SELECT identity
FROM console_identity_settings
WHERE workspace_id = {workspace:String}
ORDER BY set_at DESC, identity DESC
LIMIT 1`;

/** The new time is above the stored ones, also after the clock was set back: the newest row counts. */
const SET = `
INSERT INTO console_identity_settings (workspace_id, identity, set_at)
SELECT {workspace:String}, {identity:String}, greatest(now64(6), max(set_at) + toIntervalMicrosecond(1))
FROM console_identity_settings
WHERE workspace_id = {workspace:String}`;

/** What reads of workspaces see that do not say it (docs/design/decisions/0124-whether-reads-see-persons.md). Its methods throw Problems. */
export class IdentitySettings {
  readonly #client: ClickHouseClient;

  /** @param client with the account that stores what the console keeps */
  constructor(client: ClickHouseClient) {
    this.#client = client;
  }

  async of(workspace: string): Promise<Identity> {
    const query = { query: NEWEST, query_params: { workspace }, format: 'JSONEachRow', ...limit() } as const;
    const rows = await orStoreAway(this.#client.query(query).then((result) => result.json<{ identity: Identity }>()));
    return rows[0]?.identity ?? IDENTITY_DEFAULT;
  }

  async put(workspace: string, identity: Identity): Promise<void> {
    await orStoreAway(this.#client.command({ query: SET, query_params: { workspace, identity }, ...limit() }));
  }
}

function limit() {
  return { abort_signal: AbortSignal.timeout(STATEMENT_MS_MAX) };
}

function orStoreAway<Result>(work: Promise<Result>): Promise<Result> {
  return asUnavailable(work, 'The server that stores settings');
}
