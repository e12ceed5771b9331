import type { ChangeRow, EventRow } from '@sluice/shared/rows';
import { PERSON_SQL } from '@sluice/shared/rows/deleted-person';
import { EVENT_IDENTIFIERS, type IdentifierColumn } from '@sluice/shared/rows/event-identifiers';
import type { TemporaryStep, TemporaryTable } from '@sluice/storage/clickhouse/statement';
import type { Statement } from '@sluice/storage/clickhouse/statements';

/**
 * A temporary table that takes the rows of one kind as they come from Kafka. Where rows travel with each statement, a SELECT does the same with
 * those that were sent.
 */
interface StagingTable {
  /** The columns, each with its type. */
  readonly columns: Readonly<Record<string, string>>;
  /** SQL for what a row has that lacks a column; default: the default of the type. */
  readonly defaults: Readonly<Record<string, string>>;
  /** What every row meets, by the name that a dead letter gives as its reason. */
  readonly constraints: Readonly<Record<string, string>>;
  /** Columns that ClickHouse computes from the others. */
  readonly computed: Readonly<Record<string, { readonly type: string; readonly sql: string }>>;
}

const IDENTIFIER_COLUMNS = Object.fromEntries(EVENT_IDENTIFIERS.map(({ column }) => [column, 'String'])) as Record<
  IdentifierColumn,
  string
>;

/** The table `staged_events`. Its columns are those of `events`, and `stamped`. */
const EVENTS = {
  // Plain strings: parsing rows into LowCardinality columns takes 50 % longer.
  columns: {
    workspace_id: 'String',
    timestamp: "DateTime64(3, 'UTC')",
    uuid: 'UUID',
    type: 'String',
    event: 'String',
    user_id: 'String',
    group_id: 'String',
    ...IDENTIFIER_COLUMNS,
    properties: 'String',
    context: 'String',
    traits: 'String',
    received_at: "DateTime64(6, 'UTC')",
    stamped: 'UInt8',
  } satisfies Record<keyof EventRow, string>,
  defaults: { type: "'track'", properties: "'{}'", context: "'{}'", traits: "'{}'" },
  constraints: {
    complete: "workspace_id != '' AND event != '' AND received_at > '2000-01-01'",
    timestamp_in_range: "timestamp >= '2000-01-01' AND timestamp < '2100-01-01'",
  },
  // As a deletion names it.
  computed: { person: { type: 'String', sql: PERSON_SQL } },
};

/** The table `staged_changes`. */
const CHANGES = {
  columns: {
    workspace_id: 'LowCardinality(String)',
    kind: 'LowCardinality(String)',
    id: 'String',
    operation: 'LowCardinality(String)',
    version: 'UInt64',
    change_id: 'UUID',
    property: 'String',
    value: 'String',
    group_id: 'String',
    user_id: 'String',
  } satisfies Record<keyof ChangeRow, string>,
  defaults: {},
  constraints: {
    complete: "workspace_id != '' AND id != '' AND version > 0",
    known_kind: "kind IN ('user', 'organization', 'visitor')",
    known_operation: "operation IN ('seen', 'set', 'set_once', 'remove', 'delete', 'link', 'say')",
  },
  computed: {},
};

const STAGING_TABLES = { events: EVENTS, changes: CHANGES } as const satisfies Record<string, StagingTable>;

type StagedKind = keyof typeof STAGING_TABLES;

/** The columns of the staging tables, which are the fields that a row may have. */
export const STAGED_COLUMNS: Readonly<Record<StagedKind, readonly string[]>> = {
  events: Object.keys(EVENTS.columns),
  changes: Object.keys(CHANGES.columns),
};

/** The columns of the table `events`, as an INSERT and its SELECT from `staged_events` list them. */
export const STORED_EVENT_COLUMNS = STAGED_COLUMNS.events.filter((column) => column !== 'stamped').join(', ');

export const STAGING_STATEMENTS = {
  'stage-events': createStatement('events'),
  'stage-changes': createStatement('changes'),
  'load-events': loadStatement('events'),
  'load-changes': loadStatement('changes'),
} as const satisfies Readonly<Record<string, Statement>>;

function createStatement(kind: StagedKind): Statement {
  const { constraints, computed } = STAGING_TABLES[kind];
  const materialized = Object.entries(computed).map(([name, { type, sql }]) => `${name} ${type} MATERIALIZED ${sql}`);
  const checks = Object.entries(constraints).map(([name, check]) => `CONSTRAINT ${name} CHECK ${check}`);
  const parts = [...columnDefinitions(kind), ...materialized, ...checks];
  return {
    name: `stage-${kind}`,
    sql: `CREATE TEMPORARY TABLE staged_${kind} (\n  ${parts.join(',\n  ')}\n)\nENGINE = Memory`,
    step: { does: 'create', table: stagedTable(kind) },
  };
}

function loadStatement(kind: StagedKind): Statement {
  const { constraints, computed } = STAGING_TABLES[kind];
  const values = Object.entries(computed).map(([name, { sql }]) => `${sql} AS ${name}`);
  const checks = Object.values(constraints).map((check) => `(${check})`);
  // One thread keeps the order. A row that violates a constraint does not come back, and the number of rows says so.
  const select = `
SELECT ${['*', ...values].join(', ')}
FROM (SELECT ${sentValues(kind).join(', ')} FROM sent_rows)
WHERE ${checks.join(' AND ')}
SETTINGS max_threads = 1`;
  return {
    name: `load-${kind}`,
    sql: `INSERT INTO staged_${kind} FORMAT JSONEachRow`,
    step: { does: 'load', table: stagedTable(kind), rows: { name: 'sent_rows', fields: sentFields(kind) }, select },
  };
}

/** The staged rows of a kind, where these travel with each statement. */
export function stagedTable(kind: StagedKind): TemporaryTable {
  const { computed } = STAGING_TABLES[kind];
  const types = Object.entries(computed).map(([name, { type }]) => [name, type]);
  const columns = { ...plainColumns(kind), ...Object.fromEntries(types) };
  return { name: `staged_${kind}`, columns, isOrdered: true };
}

/** Statements that find out which rows of a batch ClickHouse cannot store. */
export interface NumberedRowStatements {
  /** Creates a table like the staging table, with a number for each row and without constraints. */
  readonly create: Statement;
  readonly load: Statement;
  /** Loads as well, but skips the rows that ClickHouse cannot parse. */
  readonly loadSkipping: Statement;
  /** Returns the numbers of the loaded rows, each with the constraint that it violates, or an empty text. */
  readonly readLoaded: Statement;
}

/** Has ClickHouse skip the rows that it cannot parse. */
const SKIPPING = { input_format_allow_errors_num: '4294967295', input_format_allow_errors_ratio: 1 };

export const NUMBERED_ROWS = {
  events: numberedRowStatements('events'),
  changes: numberedRowStatements('changes'),
} as const;

function numberedRowStatements(kind: StagedKind): NumberedRowStatements {
  const { constraints } = STAGING_TABLES[kind];
  const name = `numbered_${kind}`;
  const definitions = ['line UInt32', ...columnDefinitions(kind)].join(', ');
  const violated = Object.entries(constraints).map(([name, check]) => `NOT (${check}), '${name}'`);
  const table: TemporaryTable = { name, columns: { line: 'UInt32', ...plainColumns(kind) } };
  const load = {
    does: 'load',
    table,
    rows: { name: 'sent_rows', fields: { line: 'UInt32', ...sentFields(kind) } },
    select: `SELECT line, ${sentValues(kind).join(', ')} FROM sent_rows`,
  } as const satisfies TemporaryStep;
  return {
    create: {
      name: `number-${kind}`,
      sql: `CREATE OR REPLACE TEMPORARY TABLE ${name} (${definitions}) ENGINE = Memory`,
      step: { does: 'create', table },
    },
    load: { name: `load-numbered-${kind}`, sql: `INSERT INTO ${name} FORMAT JSONEachRow`, step: load },
    loadSkipping: {
      name: `load-numbered-${kind}`,
      sql: `INSERT INTO ${name} SETTINGS ${assignments(SKIPPING)} FORMAT JSONEachRow`,
      step: { ...load, settings: SKIPPING },
    },
    readLoaded: {
      name: `read-numbered-${kind}`,
      sql: `SELECT line, multiIf(${violated.join(', ')}, '') AS violated FROM ${name}`,
    },
  };
}

function assignments(settings: Readonly<Record<string, string | number>>): string {
  return Object.entries(settings)
    .map(([name, value]) => `${name} = ${value}`)
    .join(', ');
}

function columnDefinitions(kind: StagedKind): string[] {
  const { columns, defaults }: StagingTable = STAGING_TABLES[kind];
  return Object.entries(columns).map(([name, type]) =>
    name in defaults ? `${name} ${type} DEFAULT ${defaults[name]}` : `${name} ${type}`,
  );
}

/** The columns of a kind without LowCardinality, in which the format Native has values in another way. */
function plainColumns(kind: StagedKind): Record<string, string> {
  const { columns }: StagingTable = STAGING_TABLES[kind];
  return Object.fromEntries(
    Object.entries(columns).map(([name, type]) => [name, type === 'LowCardinality(String)' ? 'String' : type]),
  );
}

/** The fields of rows that are sent along. Such a table has no defaults: what a row lacks is NULL there. */
function sentFields(kind: StagedKind): Record<string, string> {
  const { defaults }: StagingTable = STAGING_TABLES[kind];
  return Object.fromEntries(
    Object.entries(plainColumns(kind)).map(([name, type]) => [name, name in defaults ? `Nullable(${type})` : type]),
  );
}

function sentValues(kind: StagedKind): string[] {
  const { columns, defaults }: StagingTable = STAGING_TABLES[kind];
  return Object.keys(columns).map((name) =>
    name in defaults ? `ifNull(sent_rows.${name}, ${defaults[name]}) AS ${name}` : name,
  );
}
