import { gzipSync } from 'node:zlib';

/** A body that is as expensive as possible, and accepted or refused by a limit. */
export interface HostileBody {
  readonly name: string;
  readonly body: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  /** The status of the response when there is enough memory. */
  readonly status: 202 | 400 | 413;
}

/** ingest-api's default limits, in bytes. */
const BODY_BYTES_MAX = 4 * 1_024 * 1_024;
const EVENT_BYTES_MAX = 256 * 1_024;

/** Values in an event, or a few less: an object of one member counts as two. */
const VALUES_MAX = 4_990;

const LONG_ID = '\u{1f600}'.repeat(512);

/** As many copies of `piece`, separated by commas, as fit into `bytes`. */
function repeated(piece: string, bytes: number): string {
  return Array(Math.floor(bytes / (Buffer.byteLength(piece) + 1)))
    .fill(piece)
    .join(',');
}

function submission(events: string, rest = ''): string {
  return `{"foreignUserGroupId":"a"${rest},"events":[${events}]}`;
}

/** A body full of events, each as large as one may be, of the same JSON value over and over in an array. */
function eventsOf(piece: string): string {
  const pieces = repeated(piece, Math.min(EVENT_BYTES_MAX - 100, VALUES_MAX * (Buffer.byteLength(piece) + 1)));
  const event = `{"event":"e","properties":{"a":[${pieces}]}}`;
  return submission(repeated(event, BODY_BYTES_MAX - 100));
}

function plainEvents(count: number): string {
  return Array(count).fill('{"event":"e"}').join(',');
}

function uuidV1(index: number): string {
  return `${index.toString(16).padStart(8, '0')}-7b1a-11ef-9d5e-0242ac120002`;
}

function monthsAgo(index: number): string {
  return new Date(Date.UTC(2000 + (index % 26), index % 12, 1)).toISOString();
}

const longIds = `{"foreignUserGroupId":"${LONG_ID}","foreignUserId":"${LONG_ID}"`;

const TEXTS: readonly (readonly [name: string, status: HostileBody['status'], body: string])[] = [
  ['events as large as a body may be', 202, eventsOf(`"${'x'.repeat(1_000)}"`)],
  ['empty objects', 202, eventsOf('{}')],
  [
    'more values than an event may hold',
    400,
    submission(repeated(`{"event":"e","properties":{"a":[${repeated('{}', 200_000)}]}}`, BODY_BYTES_MAX - 100)),
  ],
  ['escaped names', 202, eventsOf('{"\\n":0}')],
  ['escaped texts', 202, eventsOf('"\\u0041\\n\\""')],
  ['long numbers', 202, eventsOf('12345678901234567890')],
  ['numbers that grow when they are written out', 202, eventsOf('1e9')],
  ['numbers that grow beyond the limit of rows', 413, eventsOf('1e20')],
  [
    'many names in one object',
    202,
    submission(repeated(`{"event":"e","properties":{${names(9_900)}}}`, BODY_BYTES_MAX - 100)),
  ],
  [
    'deep nesting',
    400,
    submission(
      repeated(`{"event":"e","properties":{"a":${'['.repeat(60_000)}${']'.repeat(60_000)}}}`, BODY_BYTES_MAX - 100),
    ),
  ],
  ['5,000 plain events', 202, submission(plainEvents(5_000))],
  ['5,000 plain events with long identifiers', 413, `${longIds},"events":[${plainEvents(5_000)}]}`],
  ['3,000 plain events with long identifiers', 202, `${longIds},"events":[${plainEvents(3_000)}]}`],
  [
    'scattered times',
    202,
    submission(
      Array.from({ length: 5_000 }, (_, index) => `{"event":"e","timestamp":"${monthsAgo(index)}"}`).join(','),
    ),
  ],
  [
    'uuids of one kind',
    202,
    submission(Array.from({ length: 5_000 }, (_, index) => `{"event":"e","uuid":"${uuidV1(index)}"}`).join(',')),
  ],
  ['1,000 properties with long identifiers', 202, `${longIds},"properties":{${names(1_000)}}}`],
  ['as many properties as fit', 400, `${longIds},"properties":{${names(350_000)}}}`],
  [
    'large properties',
    202,
    `{"foreignUserGroupId":"a","properties":{${Array.from({ length: 250 }, (_, index) => `"p${index}":[${repeated('{}', 3 * 4_990)}]`).join(',')}}}`,
  ],
  ['unknown fields', 400, `{${names(350_000)}}`],
  ['an endless identifier', 400, `{"foreignUserGroupId":"${'x'.repeat(BODY_BYTES_MAX - 100)}"}`],
  ['an identifier that is a large array', 400, `{"foreignUserGroupId":[${repeated('{}', BODY_BYTES_MAX - 100)}]}`],
  ['events that are none', 400, submission(repeated('0', BODY_BYTES_MAX - 100))],
  ['faulty events', 400, submission(repeated('{"uuid":"x","colour":1,"properties":[]}', 5_000 * 40))],
  ['events of unknown fields', 400, submission(repeated(`{"event":"e",${names(9_000)}}`, BODY_BYTES_MAX - 100))],
  ['a string of escaped quotes that does not end', 400, `{"foreignUserGroupId":"${'\\"'.repeat(2_000_000)}`],
  ['brackets that do not close', 400, '['.repeat(BODY_BYTES_MAX - 1)],
  ['white space', 202, `{"foreignUserGroupId":${' '.repeat(BODY_BYTES_MAX - 100)}"a"}`],
];

function names(count: number): string {
  return Array.from({ length: count }, (_, index) => `"${index.toString(36)}":0`).join(',');
}

/** One body of each kind, and some of them compressed. */
export function hostileBodies(): readonly HostileBody[] {
  const plain = TEXTS.map(([name, status, text]): HostileBody => ({ name, status, body: Buffer.from(text) }));
  const compressed = plain.slice(0, 3).map(
    ({ name, status, body }): HostileBody => ({
      name: `${name}, compressed`,
      status,
      body: gzipSync(body),
      headers: { 'content-encoding': 'gzip' },
    }),
  );
  return [...plain, ...compressed];
}
