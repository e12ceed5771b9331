import type { ChangeRow, EventRow } from '@sluice/shared/rows';
import { PERSON_SQL } from '@sluice/shared/rows/deleted-person';
import { EVENT_IDENTIFIERS, type IdentifierColumn } from '@sluice/shared/rows/event-identifiers';
import type { Statement } from '@sluice/storage/clickhouse/statements';

/** A temporary table that takes the rows of one kind as they come from Kafka. */
interface StagingTable {
  /** The columns, each with its type and default. A row that lacks one has its default. */
  readonly columns: Readonly<Record<string, string>>;
  /** What every row meets, by the name that a dead letter gives as its reason. */
  readonly constraints: Readonly<Record<string, string>>;
  /** Columns that ClickHouse computes from the others, each with its type and expression. */
  readonly computed: Readonly<Record<string, string>>;
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
    type: "String DEFAULT 'track'",
    event: 'String',
    user_id: 'String',
    group_id: 'String',
    ...IDENTIFIER_COLUMNS,
    properties: "String DEFAULT '{}'",
    context: "String DEFAULT '{}'",
    traits: "String DEFAULT '{}'",
    received_at: "DateTime64(6, 'UTC')",
    stamped: 'UInt8',
  } satisfies Record<keyof EventRow, string>,
  constraints: {
    complete: "workspace_id != '' AND event != '' AND received_at > '2000-01-01'",
    timestamp_in_range: "timestamp >= '2000-01-01' AND timestamp < '2100-01-01'",
  },
  // As a deletion names it.
  computed: { person: `String MATERIALIZED ${PERSON_SQL}` },
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
  const { columns, constraints, computed } = STAGING_TABLES[kind];
  const checks = Object.entries(constraints).map(([name, check]) => `CONSTRAINT ${name} CHECK ${check}`);
  const parts = [...columnDefinitions({ ...columns, ...computed }), ...checks];
  return {
    name: `stage-${kind}`,
    sql: `CREATE TEMPORARY TABLE staged_${kind} (\n  ${parts.join(',\n  ')}\n)\nENGINE = Memory`,
  };
}

function loadStatement(kind: StagedKind): Statement {
  return { name: `load-${kind}`, sql: `INSERT INTO staged_${kind} FORMAT JSONEachRow` };
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

export const NUMBERED_ROWS = {
  events: numberedRowStatements('events'),
  changes: numberedRowStatements('changes'),
} as const;

function numberedRowStatements(kind: StagedKind): NumberedRowStatements {
  const { columns, constraints } = STAGING_TABLES[kind];
  const table = `numbered_${kind}`;
  const definitions = ['line UInt32', ...columnDefinitions(columns)].join(', ');
  const violated = Object.entries(constraints).map(([name, check]) => `NOT (${check}), '${name}'`);
  const skipping = 'input_format_allow_errors_num = 4294967295, input_format_allow_errors_ratio = 1';
  return {
    create: {
      name: `number-${kind}`,
      sql: `CREATE OR REPLACE TEMPORARY TABLE ${table} (${definitions}) ENGINE = Memory`,
    },
    load: { name: `load-numbered-${kind}`, sql: `INSERT INTO ${table} FORMAT JSONEachRow` },
    loadSkipping: {
      name: `load-numbered-${kind}`,
      sql: `INSERT INTO ${table} SETTINGS ${skipping} FORMAT JSONEachRow`,
    },
    readLoaded: {
      name: `read-numbered-${kind}`,
      sql: `SELECT line, multiIf(${violated.join(', ')}, '') AS violated FROM ${table}`,
    },
  };
}

function columnDefinitions(columns: StagingTable['columns']): string[] {
  return Object.entries(columns).map(([name, type]) => `${name} ${type}`);
}
