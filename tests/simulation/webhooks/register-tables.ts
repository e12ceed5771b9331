// What query-api stores of webhooks, views and dashboards, with the semantics of ClickHouse's tables: of the rows of a key the one
// with the highest version counts, and of inserts with one deduplication token the first alone is stored.

/** How many tokens of inserts a table remembers. */
const TOKENS_MAX = 10_000;

const MS_OF_DELETIONS = 36_525 * 86_400_000;
const HOUR_MS = 3_600_000;

/** Stands for the instances themselves among the leases. */
const INSTANCES = '00000000-0000-0000-0000-000000000000';

export type Row = Readonly<Record<string, unknown>>;

/** The time of ClickHouse's clock, in microseconds since 1970. */
type Clock = () => number;

interface Table {
  rows: Row[];
  /** How many inserts it has had: the number of its newest part. */
  inserts: number;
  readonly tokens: Set<string>;
}

interface TableDefinition {
  readonly key: readonly string[];
  /** Columns with a time that an insert need not name, each with the unit in microseconds. */
  readonly version: string;
}

const TABLES: Readonly<Record<string, TableDefinition>> = {
  webhooks: { key: ['workspace_id', 'id'], version: 'changed_at' },
  webhook_states: { key: ['webhook_id'], version: 'since' },
  webhook_positions: { key: ['webhook_id'], version: 'version' },
  webhook_leases: { key: ['webhook_id', 'epoch', 'holder'], version: 'recorded_at' },
  webhook_deliveries: { key: ['webhook_id', 'slot'], version: 'at' },
  console_documents: { key: ['kind', 'workspace_id', 'id'], version: 'changed_at' },
};

/** The tables, for the statements that query-api has. Each statement is done at one moment. */
export class RegisterTables {
  readonly #clockUs: Clock;
  readonly #tables = new Map<string, Table>(
    Object.keys(TABLES).map((name) => [name, { rows: [], inserts: 0, tokens: new Set<string>() }]),
  );

  constructor(clockUs: Clock) {
    this.#clockUs = clockUs;
  }

  /** Stores rows, unless an insert with this token was stored before. Returns whether it did. */
  insert(name: string, values: readonly Row[], token?: string): boolean {
    const table = this.#table(name);
    if (token !== undefined) {
      if (table.tokens.has(token)) return false;
      table.tokens.add(token);
      const [oldest] = table.tokens;
      if (table.tokens.size > TOKENS_MAX && oldest !== undefined) table.tokens.delete(oldest);
    }
    table.inserts += 1;
    const nowUs = this.#clockUs();
    for (const row of values) table.rows.push({ ...defaultsOf(name, row, nowUs), ...row });
    return true;
  }

  /** Returns the newest row of each key, as FINAL does. */
  final(name: string): Row[] {
    const { key, version } = TABLES[name] as TableDefinition;
    const newest = new Map<string, Row>();
    for (const row of this.#table(name).rows) {
      const of = key.map((column) => row[column]).join('\0');
      const known = newest.get(of);
      // The one that was inserted last of equal versions.
      if (!known || Number(row[version]) >= Number(known[version])) newest.set(of, row);
    }
    return [...newest.values()];
  }

  /** @throws {Error} for a statement that it does not know */
  query(sql: string, parameters: Row): readonly Row[] {
    if (sql.includes('AS parts')) return [this.#mark()];
    if (sql.includes('newest_state')) return this.#changed(Number(parameters['since_ms']));
    if (sql.includes('positions.sending_to')) return this.#storedWebhooks(parameters);
    if (sql.includes('is_older_held')) return this.#leases(parameters['webhooks'] as string[] | undefined);
    if (sql.includes('SELECT holder')) return this.#instances();
    if (sql.includes('count()') && sql.includes('FROM webhooks')) return this.#count(parameters);
    if (sql.includes('console_documents') && sql.includes('created_at_ms')) return this.#documents(parameters);
    throw new Error(`the simulated ClickHouse does not know the statement ${sql}`);
  }

  /** Removes rows for good, as the statements of `Purge` do. @throws {Error} for another statement */
  command(sql: string): void {
    const [, altered, deleted] = /^(?:ALTER TABLE (\w+) DELETE|DELETE FROM (\w+)) WHERE/.exec(sql) ?? [];
    const name = altered ?? deleted;
    if (name === undefined) throw new Error(`the simulated ClickHouse does not know the statement ${sql}`);
    const table = this.#table(name);
    const registered = name === 'console_documents' ? name : 'webhooks';
    const gone = new Set(this.#table(registered).rows.flatMap((row) => (row['is_deleted'] ? [row['id']] : [])));
    const nowUs = this.#clockUs();
    const isOld = (row: Row) => Number(row['changed_at']) < nowUs + (MS_OF_DELETIONS - HOUR_MS) * 1_000;
    const isRemoved = (row: Row) => {
      if (name !== registered) return gone.has(row['webhook_id']);
      return sql.includes('NOT is_deleted')
        ? !row['is_deleted'] && gone.has(row['id'])
        : row['is_deleted'] && isOld(row);
    };
    table.rows = table.rows.filter((row) => !isRemoved(row));
    // A mutation writes new parts.
    if (altered) table.inserts += 1;
  }

  #table(name: string): Table {
    const table = this.#tables.get(name);
    if (!table) throw new Error(`there is no table ${name}`);
    return table;
  }

  #mark(): Row {
    const parts = ['webhooks', 'webhook_states'].map((name) => this.#table(name).inserts);
    return { parts, now_ms: Math.floor(this.#clockUs() / 1_000) };
  }

  #changed(sinceMs: number): Row[] {
    const sinceUs = sinceMs * 1_000;
    const changed = new Set([
      ...this.#table('webhooks').rows.flatMap((row) => (Number(row['changed_at']) >= sinceUs ? [row['id']] : [])),
      ...this.#table('webhook_states').rows.flatMap((row) =>
        Number(row['since']) >= sinceUs ? [row['webhook_id']] : [],
      ),
    ]);
    const states = new Map(this.final('webhook_states').map((row) => [row['webhook_id'], row]));
    return this.final('webhooks')
      .filter(({ id }) => changed.has(id))
      .map(({ id, workspace_id: workspace, is_deleted }) => {
        const state = states.get(id);
        return { id, workspace, is_deleted, state: state?.['state'] ?? '', reason: state?.['reason'] ?? '' };
      });
  }

  #storedWebhooks(parameters: Row): Row[] {
    const ids = parameters['ids'] as string[];
    const workspaces = (parameters['workspaces'] as string[] | undefined) ?? [parameters['workspace'] as string];
    const isMeant = (row: Row) =>
      workspaces.includes(row['workspace_id'] as string) &&
      ((ids.length === 0 && parameters['workspaces'] === undefined) || ids.includes(row['id'] as string));
    const [states, positions] = ['webhook_states', 'webhook_positions'].map(
      (name) => new Map(this.final(name).map((row) => [row['webhook_id'], row])),
    );
    return this.final('webhooks')
      .filter((row) => isMeant(row) && !row['is_deleted'])
      .sort((one, other) => Number(one['created_at']) - Number(other['created_at']))
      .map((row) => ({
        ...{ id: row['id'], workspace: row['workspace_id'], kind: row['kind'], url: row['url'], filter: row['filter'] },
        ...{
          batched: row['batched'],
          content: row['content'],
          secret: row['secret'],
          previous_secret: row['previous_secret'],
        },
        ...{ previous_secret_until_ms: row['previous_secret_until'], created_at_ms: row['created_at'] },
        changed_at_us: row['changed_at'],
        ...stateColumns(states?.get(row['id'])),
        ...positionColumns(positions?.get(row['id'])),
      }));
  }

  #leases(webhooks: readonly string[] | undefined): Row[] {
    const nowUs = this.#clockUs();
    const isMeant = ({ webhook_id }: Row) =>
      webhook_id !== INSTANCES && (webhooks === undefined || webhooks.includes(webhook_id as string));
    const leases = this.final('webhook_leases')
      .filter(isMeant)
      .map((row) => ({
        ...{ webhook: row['webhook_id'] as string, epoch: Number(row['epoch']), holder: row['holder'] as string },
        isInForce: Number(row['expires_at']) > nowUs,
      }));
    // The epoch of the positions counts alone; those of all webhooks do not.
    const positions = webhooks === undefined ? [] : this.final('webhook_positions').filter(isMeant);
    const all = [
      ...leases,
      ...positions.map((row) => ({
        ...{ webhook: row['webhook_id'] as string, epoch: Number(row['epoch']), holder: '', isInForce: false },
      })),
    ];
    return [...Map.groupBy(all, ({ webhook }) => webhook)].map(([webhook, rows]) => {
      const newest = Math.max(...rows.map(({ epoch }) => epoch));
      const ofNewest = rows.filter(({ epoch }) => epoch === newest);
      return {
        ...{ webhook, newest_epoch: newest },
        holders: [...new Set(ofNewest.map(({ holder }) => holder).filter((holder) => holder !== ''))],
        is_held: ofNewest.some(({ isInForce }) => isInForce) ? 1 : 0,
        is_older_held: rows.some(({ epoch, isInForce }) => epoch < newest && isInForce) ? 1 : 0,
      };
    });
  }

  #instances(): Row[] {
    const nowUs = this.#clockUs();
    return this.final('webhook_leases')
      .filter((row) => row['webhook_id'] === INSTANCES && Number(row['expires_at']) > nowUs)
      .map(({ holder }) => ({ holder: holder as string }))
      .sort((one, other) => (one.holder < other.holder ? -1 : 1));
  }

  #count({ workspace, kind }: Row): Row[] {
    const isCounted = (row: Row) => row['workspace_id'] === workspace && row['kind'] === kind && !row['is_deleted'];
    const rows = this.final('webhooks').filter(isCounted);
    return [{ count: rows.length }];
  }

  #documents({ kind, workspace, ids }: Row): Row[] {
    const named = ids as string[];
    return this.final('console_documents')
      .filter((row) => row['kind'] === kind && row['workspace_id'] === workspace && named.includes(row['id'] as string))
      .filter((row) => !row['is_deleted'])
      .map((row) => ({
        ...{ workspace, document: row['id'], content: row['content'] },
        ...{ created_at_ms: row['created_at'], changed_at_us: row['changed_at'] },
      }));
  }
}

/** What a row has that does not say it itself. */
function defaultsOf(name: string, row: Row, nowUs: number): Row {
  const [us, ms] = [Math.floor(nowUs), Math.floor(nowUs / 1_000)];
  switch (name) {
    case 'webhook_states':
      return { since: us };
    case 'webhook_positions':
      return { version: Number(row['epoch']) * 2 ** 32 + Number(row['sequence']), stored_at: ms };
    case 'webhook_leases':
      return { recorded_at: us, expires_at: (ms + Number(row['lease_ms'])) * 1_000 };
    default:
      return { changed_at: us };
  }
}

function stateColumns(row: Row | undefined): Row {
  return { state: row?.['state'] ?? '', reason: row?.['reason'] ?? '', since_us: row?.['since'] ?? 0 };
}

function positionColumns(row: Row | undefined): Row {
  const attempts = Number(row?.['attempts'] ?? 0);
  const failingSince = Number(row?.['failing_since'] ?? 0);
  return {
    ...{ epoch: row?.['epoch'] ?? 0, position: row?.['position'] ?? '', sending_to: row?.['sending_to'] ?? '' },
    ...{ attempts, failing_since_ms: failingSince, log_lines: row?.['log_lines'] ?? 0 },
    failing_ms: Math.max(0, attempts > 0 ? Number(row?.['stored_at']) - failingSince : 0),
  };
}
