// The names that a statement may use: shown beside the box, and completed in it.

interface TableOfSql {
  readonly name: string;
  readonly columns: readonly (readonly [name: string, type: string])[];
}

const ENTITY_COLUMNS = [
  ['properties', 'JSON text'],
  ['first_seen_at', 'time'],
  ['last_seen_at', 'time'],
] as const;

/** The views of the workspace, with what they have. */
export const TABLES: readonly TableOfSql[] = [
  {
    name: 'events',
    columns: [
      ['timestamp', 'time'],
      ['received_at', 'time'],
      ['uuid', 'UUID'],
      ['event', 'text'],
      ['type', 'text'],
      ['user_id', 'text'],
      ['organization_id', 'text'],
      ['anonymous_id', 'text'],
      ['instance_id', 'text'],
      ['properties', 'JSON text'],
      ['context', 'JSON text'],
      ['traits', 'JSON text'],
    ],
  },
  { name: 'users', columns: [['user_id', 'text'], ...ENTITY_COLUMNS] },
  { name: 'organizations', columns: [['organization_id', 'text'], ...ENTITY_COLUMNS] },
  {
    name: 'identities',
    columns: [
      ['anonymous_id', 'text'],
      ['user_id', 'text'],
      ['linked_at', 'time'],
      ['linked_by', 'text'],
    ],
  },
];

/** Statements to begin with. */
export const EXAMPLES: readonly (readonly [title: string, sql: string])[] = [
  ['Most frequent events', 'SELECT event, count() AS events\nFROM events\nGROUP BY event\nORDER BY events DESC'],
  [
    'Users of each day',
    'SELECT toDate(timestamp) AS day, uniqExact(user_id) AS users\nFROM events\nWHERE timestamp > now() - INTERVAL 30 DAY\nGROUP BY day\nORDER BY day',
  ],
  [
    'Events of each day',
    'SELECT toDate(timestamp) AS day, event, count() AS events\nFROM events\nWHERE timestamp > now() - INTERVAL 14 DAY\nGROUP BY day, event\nORDER BY day',
  ],
  [
    'Users by a property',
    "SELECT JSONExtractString(properties, 'plan') AS plan, count() AS users\nFROM users\nGROUP BY plan\nORDER BY users DESC",
  ],
  [
    'Days until the first payment',
    "SELECT days, count() AS users\nFROM (\n  SELECT user_id, dateDiff('day', any(u.first_seen_at), min(e.timestamp)) AS days\n  FROM events AS e\n  JOIN users AS u USING (user_id)\n  WHERE e.event = 'invoice_paid'\n  GROUP BY user_id\n)\nGROUP BY days\nORDER BY days",
  ],
];

const KEYWORDS =
  'SELECT DISTINCT FROM WHERE PREWHERE GROUP BY HAVING ORDER LIMIT OFFSET JOIN LEFT INNER USING UNION ALL WITH INTERVAL BETWEEN LIKE ILIKE OVER PARTITION CASE WHEN THEN ELSE END';
const FUNCTIONS =
  'count countIf uniq uniqExact sum sumIf avg min max argMin argMax any quantile median groupArray toDate toStartOfMinute toStartOfHour toStartOfDay toStartOfWeek toStartOfMonth dateDiff now toString toFloat64 toUInt64 if multiIf coalesce round lower upper length concat position JSONExtractString JSONExtractFloat JSONExtractInt JSONExtractBool JSONExtractRaw JSONHas arrayJoin arrayMap row_number rank lagInFrame';

/** What a word may become. */
export interface Completion {
  readonly label: string;
  /** What stands in place of the word. */
  readonly text: string;
}

/** All names but those of properties. */
const WORDS: readonly Completion[] = [
  ...new Set([...TABLES.flatMap(({ name, columns }) => [name, ...columns.map(([column]) => column)])]),
  ...FUNCTIONS.split(' '),
  ...KEYWORDS.split(' '),
].map((label) => ({ label, text: label }));

/** Returns what reads a property of an event, in SQL. @param path dots lead into objects */
export function propertySql(path: string): string {
  const names = path.split('.').map((name) => `'${name.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`);
  return `JSONExtractString(properties, ${names.join(', ')})`;
}

/** The list has so many at most. */
const COMPLETIONS_MAX = 8;

/** A word has so many characters before it is completed. */
const WORD_MIN = 2;

/** The word that is being written, and what it may become. */
export interface Completing {
  /** Where the word begins. */
  readonly start: number;
  readonly completions: readonly Completion[];
}

/**
 * Returns what the word before the cursor may become; nothing within a text of the statement.
 *
 * @param properties the names of the workspace's properties
 */
export function completingAt(sql: string, cursor: number, properties: readonly string[]): Completing {
  const before = sql.slice(0, cursor);
  const [word = ''] = /[A-Za-z_]\w*$/.exec(before) ?? [];
  const start = cursor - word.length;
  const isInText = (before.match(/'/g)?.length ?? 0) % 2 === 1;
  if (word.length < WORD_MIN || isInText || /\w/.test(sql.charAt(cursor))) return { start, completions: [] };
  const begins = ({ label }: Completion) => label.toLowerCase().startsWith(word.toLowerCase()) && label !== word;
  const ofProperties = properties.map((label) => ({ label, text: propertySql(label) }));
  const found = [...WORDS, ...ofProperties].filter(begins);
  // A keyword that is written in small letters is written to its end.
  const isWritten = WORDS.some(({ label }) => label.toLowerCase() === word.toLowerCase());
  return { start, completions: isWritten ? [] : found.slice(0, COMPLETIONS_MAX) };
}
