import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { seededRandom } from '../random.ts';
import { padded } from './body-door.ts';
import type { BuiltRequest, Door, Doors } from './door.ts';
import { lengthInHead } from './head.ts';
import { LIMITS, type LimitId } from './limits.ts';
import { below, FLAVOURS, type Flavour, NUMBERS, PRINTABLE, pick, type Random, textOf } from './texts.ts';

/** What a request has where no corner says otherwise. */
const ORDINARY_LENGTH = 12;

/** A part that is named by its limit when it is beyond it. */
type Values = ReadonlyMap<LimitId, number>;

const COMPRESSORS = { gzip: gzipSync, br: brotliCompressSync, zstd: zstdCompressSync } as const;

/** The most that a row has besides the event or the property and the identifiers, in bytes. */
const ROW_OVERHEAD_BYTES = 500;

/** Writes the parts of one request from a seed. */
class Writer {
  readonly random: Random;
  readonly #values: Values;
  readonly flavour: Flavour;

  constructor(values: Values, seed: number) {
    this.random = seededRandom(seed);
    this.#values = values;
    this.flavour = pick(this.random, FLAVOURS);
  }

  value(limit: LimitId): number | undefined {
    return this.#values.get(limit);
  }

  isOver(limit: LimitId): boolean {
    return (this.value(limit) ?? 0) > LIMITS[limit].max;
  }

  text(length: number, index = 0): string {
    return textOf(this.flavour, length, index);
  }

  /** The identifier of a request, as long as its corner says. */
  identifier(index = 0): string {
    return this.text(this.value('identifier') ?? ORDINARY_LENGTH, index);
  }

  scalar(): string {
    const random = this.random;
    return random() < 0.5 ? pick(random, NUMBERS) : JSON.stringify(textOf(pick(random, FLAVOURS), below(random, 3)));
  }

  /** Levels of arrays and objects around a number. */
  nested(levels: number): string {
    const isArray = this.random() < 0.5;
    const [open, close] = isArray ? ['[', ']'] : ['{"a":', '}'];
    return `${open.repeat(levels)}0${close.repeat(levels)}`;
  }
}

/** How many values a JSON text has as ingest-api counts them: an empty object or array counts as two. */
function valuesIn(json: string): number {
  return 1 + (json.replaceAll(/"(?:[^"\\]|\\.)*"/g, '').match(/[[{,]/g)?.length ?? 0);
}

/** An object with so many values and bytes. The values are scalars that leave room for the bytes. */
function filled(writer: Writer, values: number | undefined, bytes: number | undefined): string {
  // The names and the text count as well: an object, an array and its items, and the text.
  const items = values === undefined ? 0 : values - (bytes === undefined ? 2 : 3);
  const members = values === undefined ? [] : [`"v":[${Array(items).fill(writer.scalar()).join(',')}]`];
  if (bytes === undefined) return `{${members.join(',')}}`;
  const rest = bytes - Buffer.byteLength(`{${[...members, '"p":""'].join(',')}}`);
  return `{${[...members, `"p":${JSON.stringify(fittingText(writer, rest))}`].join(',')}}`;
}

/** A text whose JSON has exactly so many bytes between its quotes. */
function fittingText(writer: Writer, bytes: number): string {
  const piece = writer.text(16);
  const size = Buffer.byteLength(JSON.stringify(piece)) - 2;
  const count = Math.max(Math.floor(bytes / size), 0);
  return `${piece.repeat(count)}${'x'.repeat(Math.max(bytes - count * size, 0))}`;
}

/** The objects that an event can have, and its times. */
function eventMembers(writer: Writer): string {
  const members = [`"event":${JSON.stringify(writer.text(writer.value('eventName') ?? ORDINARY_LENGTH))}`];
  const ahead = writer.value('ahead');
  if (ahead !== undefined) {
    // Where the limit lies changes with the clock: a minute on either side of it.
    const minutes = ahead === LIMITS.ahead.max ? -1 : 60 * (ahead - LIMITS.ahead.max);
    const ms = Date.now() + 3_600_000 * LIMITS.ahead.max + 60_000 * minutes;
    members.push(`"timestamp":"${new Date(ms).toISOString()}"`);
  }
  const depth = writer.value('depth');
  const field = pick(writer.random, ['properties', 'context', 'traits']);
  if (depth !== undefined) members.push(`"${field}":{"${writer.random()}":${writer.nested(depth - 1)}}`);
  return members.join(',');
}

/** The event that stands in all corners of its request, the others, and what is beyond a limit in the first one. */
function events(writer: Writer): { readonly special: string; readonly plain: string } {
  const plain = '{"event":"e"}';
  const [values, bytes] = [writer.value('eventValues'), writer.value('eventBytes')];
  const base = `{${eventMembers(writer)},"anonymousId":${JSON.stringify(writer.identifier(1))}}`;
  if (values === undefined && bytes === undefined) return { special: base, plain };
  const name = base.includes('"properties"') ? 'instanceId' : 'properties';
  if (name === 'instanceId') return { special: filledEvent(base, writer, 'traits', values, bytes), plain };
  return { special: filledEvent(base, writer, 'properties', values, bytes), plain };
}

/** Fills an object of an event, so that the event as a whole has so many values and bytes. */
function filledEvent(base: string, writer: Writer, field: string, values?: number, bytes?: number): string {
  const around = `${base.slice(0, -1)},"${field}":`;
  const valuesOfObject = values === undefined ? undefined : values - valuesIn(`${around}0}`) + 1;
  const bytesOfObject = bytes === undefined ? undefined : bytes - Buffer.byteLength(around) - 1;
  return `${around}${filled(writer, valuesOfObject, bytesOfObject)}}`;
}

/** As many copies of the special event as fit into a body, and plain ones after them. */
function manyEvents(special: string, plain: string, count: number, bytesMax: number): string[] {
  const room = bytesMax - count * (plain.length + 1) - 8_192;
  const copies = Math.max(1, Math.min(count, Math.floor(room / (Buffer.byteLength(special) + 1))));
  return Array.from({ length: count }, (_, index) => (index < copies ? special : plain));
}

/** The members of `properties` of a submission, or of `traits` of a call. */
function properties(writer: Writer): string[] {
  const count = writer.value('properties') ?? 0;
  const prefix = writer.text(count > 0 ? 200 : ORDINARY_LENGTH);
  const members = Array.from({ length: count }, (_, index) => `${JSON.stringify(`${prefix}${index}`)}:${index}`);
  const [values, bytes] = [writer.value('propertyValues'), writer.value('propertyBytes')];
  if (values === undefined && bytes === undefined) return members;
  const size = bytes === undefined ? undefined : bytes - 'large'.length;
  return [`"large":${filled(writer, values, size)}`, ...members.slice(1)];
}

/** Returns the names of what has to be named; an array for each limit that the request is beyond. */
function beyond(writer: Writer, limits: readonly LimitId[], texts: Partial<Record<LimitId, string>>): string[][] {
  return limits.filter((limit) => writer.isOver(limit)).map((limit) => [texts[limit] ?? String(LIMITS[limit].max)]);
}

const INVALID: readonly LimitId[] = [
  'events',
  'properties',
  'eventValues',
  'propertyValues',
  'depth',
  'identifier',
  'eventName',
  'ahead',
  'idempotencyKey',
];

const FAULT_TEXTS: Partial<Record<LimitId, string>> = { ahead: 'one day from now' };

/** What the response has to be, by what is beyond its limit. A body that is too large is not read. */
function expectation(writer: Writer, body: Buffer, rows: { least: number; most: number }): BuiltRequest['expected'] {
  if (body.length > LIMITS.bodyBytes.max) return { statuses: [413], named: [['body_too_large']] };
  const invalid = beyond(writer, INVALID, FAULT_TEXTS);
  if (invalid.length > 0) return { statuses: [400], named: [['invalid_request'], ...invalid] };
  const parts = beyond(writer, ['eventBytes', 'propertyBytes'], {});
  if (parts.length > 0) return { statuses: [413], named: [['body_too_large'], ...parts] };
  const rowsMax = LIMITS.rowBytes.max;
  if (rows.least > rowsMax) return { statuses: [413], named: [['body_too_large'], [String(rowsMax)]] };
  return { statuses: rows.most > rowsMax ? [202, 413] : [202], named: [] };
}

/** The least and the most bytes that rows have. */
function rowBytes(parts: readonly string[], identifiers: string, isGrowing: boolean): { least: number; most: number } {
  const each = Buffer.byteLength(JSON.stringify(identifiers)) - 2;
  const sum = parts.reduce((bytes, part) => bytes + Buffer.byteLength(part), 0);
  // A number of few digits, such as 1e20, is written out in its row.
  const most = sum * (isGrowing ? 8 : 1.2) + parts.length * (each + ROW_OVERHEAD_BYTES);
  return { least: sum * 0.8 + parts.length * each, most };
}

function encoded(body: Buffer, writer: Writer): { body: Buffer; headers: Record<string, string> } {
  const encoding = pick(writer.random, [undefined, undefined, ...(Object.keys(COMPRESSORS) as ['gzip', 'br', 'zstd'])]);
  // The slowest levels would delay the other requests of a round.
  if (encoding === undefined || (encoding === 'br' && body.length > 65_536)) return { body, headers: {} };
  return { body: COMPRESSORS[encoding](body), headers: { 'content-encoding': encoding } };
}

/** `POST /v1/public/userGroups` and `/users`. */
function submissionDoor(path: string, fields: readonly string[]): Door {
  return {
    limits: [...INVALID, 'bodyBytes', 'eventBytes', 'propertyBytes', 'rowBytes'],
    build(values, seed) {
      const writer = new Writer(values, seed);
      const { special, plain } = events(writer);
      const rowsOf = values.get('rowBytes');
      const count = values.get('events') ?? (rowsOf === undefined ? 3 : LIMITS.events.max);
      const texts = manyEvents(special, plain, count, LIMITS.bodyBytes.max);
      const members = properties(writer);
      // Rows repeat the identifiers: with long ones, that of few events is near the limit, and that of many beyond it.
      const idLength = rowsOf === undefined ? undefined : LIMITS.identifier.max;
      const given = fields.map((_, index) =>
        idLength === undefined || values.has('identifier') ? writer.identifier(index) : textOf('astral', idLength),
      );
      const parts = [
        ...fields.map((field, index) => `"${field}":${JSON.stringify(given[index])}`),
        `"events":[${texts.join(',')}]`,
        ...(members.length > 0 ? [`"properties":{${members.join(',')}}`] : []),
      ];
      const plainBody = padded(`{${parts.join(',')}}`, values.get('bodyBytes'));
      const key = values.get('idempotencyKey');
      const isGrowing = values.has('eventValues') || values.has('propertyValues');
      const rows = rowBytes([...texts, ...members], given.join(''), isGrowing);
      const expected = expectation(writer, plainBody, rows);
      const { body, headers } = encoded(plainBody, writer);
      return {
        expected,
        request: {
          service: 'ingest-api',
          method: 'POST',
          path,
          body,
          headers: {
            'content-type': 'application/json',
            ...headers,
            ...(key !== undefined && { 'idempotency-key': 'k'.repeat(key) }),
          },
        },
      };
    },
  };
}

const REJECTED: readonly LimitId[] = [
  'properties',
  'eventValues',
  'depth',
  'identifier',
  'eventName',
  'ahead',
  'callBytes',
  'messageId',
];

/** The call that stands in all corners of its request. */
function specialCall(writer: Writer, type: string): string {
  const messageId = writer.text(writer.value('messageId') ?? ORDINARY_LENGTH, below(writer.random, 1_000_000) + 1);
  const members = properties(writer);
  const base = `{"type":"${type}",${eventMembers(writer).replace('"traits":', '"context":')},"userId":${JSON.stringify(writer.identifier())},"groupId":"g","messageId":${JSON.stringify(messageId)}${members.length > 0 ? `,"traits":{${members.join(',')}}` : ''}}`;
  const [values, bytes] = [writer.value('eventValues'), writer.value('callBytes')];
  if (values === undefined && bytes === undefined) return base;
  const field = base.includes('"properties":') ? 'integrations' : 'properties';
  return filledEvent(base, writer, field, values, bytes);
}

/** Whether calls of a type have what the limit is about. */
function isChecked(limit: LimitId, type: string): boolean {
  if (limit === 'eventName') return type === 'track';
  return limit !== 'properties' || type === 'identify' || type === 'group';
}

/** Routes of Segment's and RudderStack's clients, which read the same. `type` is that of a route of one call. */
function callDoor(paths: readonly string[], type?: string): Door {
  const isBatch = type === undefined;
  return {
    also: paths.slice(1).map((path) => `POST ${path}`),
    limits: [
      ...REJECTED.filter((limit) => isBatch || isChecked(limit, type)),
      'bodyBytes',
      'writeKey',
      ...(isBatch ? (['calls'] as const) : []),
    ],
    build(values, seed) {
      const writer = new Writer(values, seed);
      const callType = type ?? (values.has('properties') ? 'identify' : 'track');
      const special = specialCall(writer, callType);
      const count = values.get('calls') ?? 3;
      const plain = '{"type":"track","userId":"u","event":"e"}';
      const calls = manyEvents(special, plain, count, LIMITS.bodyBytes.max);
      const keyLength = values.get('writeKey');
      const key = keyLength === undefined ? '' : `"writeKey":"${'k'.repeat(keyLength - 2)}",`;
      const json = isBatch ? `{${key}"batch":[${calls.join(',')}]}` : `{${key}${special.slice(1)}`;
      const plainBody = padded(json, values.get('bodyBytes'));
      const rejected = REJECTED.some((limit) => isChecked(limit, callType) && writer.isOver(limit));
      const isGrowing = values.has('eventValues');
      const rows = rowBytes(isBatch ? calls : [special], writer.identifier(), isGrowing);
      const { body, headers } = encoded(plainBody, writer);
      const named = rejected ? [['invalid_call', 'too_large']] : [];
      return {
        request: {
          service: 'ingest-api',
          method: 'POST',
          path: pick(writer.random, paths),
          body,
          headers: { ...headers, ...(keyLength !== undefined && { authorization: '' }) },
        },
        expected: expectationOfCalls(writer, plainBody, rows, named),
      };
    },
  };
}

function expectationOfCalls(
  writer: Writer,
  body: Buffer,
  rows: { readonly least: number; readonly most: number },
  named: readonly (readonly string[])[],
): BuiltRequest['expected'] {
  if (body.length > LIMITS.bodyBytes.max) return { statuses: [413], named: [['body_too_large']] };
  if (writer.isOver('calls')) return { statuses: [413], named: [[String(LIMITS.calls.max)]] };
  // It is no key that anybody has, whatever its length.
  if (writer.value('writeKey') !== undefined) return { statuses: [401], named: [['unauthorized']] };
  if (rows.least > LIMITS.rowBytes.max) return { statuses: [413], named: [['body_too_large']] };
  return rows.most > LIMITS.rowBytes.max ? { statuses: [200, 413], named: [] } : { statuses: [200], named };
}

const deletionDoor: Door = {
  limits: ['identifier'],
  build(values, seed) {
    const writer = new Writer(values, seed);
    const name = seed % 2 === 0 ? 'foreignId' : 'anonymousId';
    const path = `/v1/users?${name}=${encodeURIComponent(writer.identifier())}`;
    const expected = writer.isOver('identifier')
      ? { statuses: [400], named: [[String(LIMITS.identifier.max)]] }
      : { statuses: [202], named: [] };
    return { request: { service: 'ingest-api', method: 'DELETE', path, headers: {} }, expected };
  },
};

/** Says whose a visitor is. A text may mean nobody, which is refused. */
const identityDoor: Door = {
  limits: ['identifier'],
  build(values, seed) {
    const writer = new Writer(values, seed);
    const body = JSON.stringify({ anonymousId: writer.identifier(), userId: writer.identifier(1) });
    const expected = writer.isOver('identifier')
      ? { statuses: [400], named: [[String(LIMITS.identifier.max)]] }
      : { statuses: [202, 400], named: [] };
    const headers = { 'content-type': 'application/json' };
    const path = '/v1/identities';
    return { request: { service: 'ingest-api', method: 'POST', path, headers, body: Buffer.from(body) }, expected };
  },
};

const takingBackDoor: Door = {
  limits: ['identifier'],
  build(values, seed) {
    const writer = new Writer(values, seed);
    const path = `/v1/identities?anonymousId=${encodeURIComponent(writer.identifier())}`;
    const expected = writer.isOver('identifier')
      ? { statuses: [400], named: [[String(LIMITS.identifier.max)]] }
      : { statuses: [202], named: [] };
    return { request: { service: 'ingest-api', method: 'DELETE', path, headers: {} }, expected };
  },
};

const mergeDoor: Door = {
  limits: ['identifier'],
  build(values, seed) {
    const writer = new Writer(values, seed);
    const body = JSON.stringify({ userId: writer.identifier(), into: writer.identifier(1) });
    const expected = writer.isOver('identifier')
      ? { statuses: [400], named: [[String(LIMITS.identifier.max)]] }
      : { statuses: [202, 400], named: [] };
    const headers = { 'content-type': 'application/json' };
    const path = '/v1/identities/merge';
    return { request: { service: 'ingest-api', method: 'POST', path, headers, body: Buffer.from(body) }, expected };
  },
};

const mergeBackDoor: Door = {
  limits: ['identifier'],
  build(values, seed) {
    const writer = new Writer(values, seed);
    const path = `/v1/identities/merge?userId=${encodeURIComponent(writer.identifier())}`;
    const expected = writer.isOver('identifier')
      ? { statuses: [400], named: [[String(LIMITS.identifier.max)]] }
      : { statuses: [202], named: [] };
    return { request: { service: 'ingest-api', method: 'DELETE', path, headers: {} }, expected };
  },
};

/** As many whole characters of a text as a URL writes in so many bytes. */
function encodedWithin(text: string, bytesMax: number): string {
  let encoded = '';
  for (const character of text) {
    const next = encodeURIComponent(character);
    if (encoded.length + next.length > bytesMax) break;
    encoded += next;
  }
  return encoded;
}

const sourceDoor: Door = {
  limits: ['head'],
  build(values, seed) {
    const head = values.get('head') ?? LIMITS.head.max / 2;
    const bytes = lengthInHead(head);
    const pad = textOf(pick(seededRandom(seed), PRINTABLE), bytes, 0);
    const expected =
      head > LIMITS.head.max ? { statuses: [400], named: [['too long']] } : { statuses: [200], named: [] };
    const path = `/sourceConfig?p=${encodedWithin(pad, bytes - 100)}`;
    return { request: { service: 'ingest-api', method: 'GET', path, headers: {} }, expected };
  },
};

/** What clients ask for before they send; every key gets it. */
const settingsDoor: Door = {
  limits: [],
  also: ['GET /projects/{key}/settings'],
  build(values, seed) {
    const writer = new Writer(values, seed);
    const key = encodeURIComponent(writer.identifier());
    const path = `${pick(writer.random, ['', '/v1'])}/projects/${key}/settings`;
    return {
      request: { service: 'ingest-api', method: 'GET', path, headers: {} },
      expected: { statuses: [200], named: [] },
    };
  },
};

/** Routes whose requests are ignored: they need no key, and nothing reads their bodies. */
function ignoredDoor(paths: readonly string[], also: readonly string[] = []): Door {
  return {
    limits: ['ignoredBody'],
    also,
    build(values, seed) {
      const random = seededRandom(seed);
      const path = pick(random, paths);
      const bytes = values.get('ignoredBody') ?? below(random, 100_000);
      const isOver = bytes > LIMITS.ignoredBody.max;
      return {
        request: { service: 'ingest-api', method: 'POST', path, headers: {}, body: Buffer.alloc(bytes, 'x') },
        expected: isOver ? { statuses: [413], named: [['body_too_large']] } : { statuses: [200], named: [] },
      };
    },
  };
}

const TYPES = ['track', 'identify', 'group', 'page', 'screen', 'alias'] as const;

/** The routes of ingest-api, without those of PostHog's clients. */
export const SUBMISSION_DOORS: Doors = {
  'POST /v1/public/userGroups': submissionDoor('/v1/public/userGroups', ['foreignUserGroupId', 'foreignUserId']),
  'POST /v1/public/users': submissionDoor('/v1/public/users', ['foreignId']),
  'POST /v1/batch': callDoor(['/v1/batch', '/v1/b']),
  'POST /v1/import': callDoor(['/v1/import']),
  'POST /beacon/v1/batch': callDoor(['/beacon/v1/batch']),
  ...Object.fromEntries(TYPES.map((type) => [`POST /v1/${type}`, callDoor([`/v1/${type}`, `/v1/${type[0]}`], type)])),
  'DELETE /v1/users': deletionDoor,
  'POST /v1/identities': identityDoor,
  'DELETE /v1/identities': takingBackDoor,
  'POST /v1/identities/merge': mergeDoor,
  'DELETE /v1/identities/merge': mergeBackDoor,
  'GET /sourceConfig': sourceDoor,
  'GET /v1/projects/{key}/settings': settingsDoor,
  'POST /v1/m': ignoredDoor(['/v1/m', '/m', '/rsaMetrics'], ['POST /m', 'POST /rsaMetrics']),
  'POST /s': ignoredDoor(['/s/', '/s']),
  'POST /i/{version}/{kind}': ignoredDoor(['/i/v1/logs']),
  'POST /api/{kind}': ignoredDoor(
    ['/api/push_tokens', '/api/environments/1', '/flags/new'],
    ['POST /api/{kind}/{part}', 'POST /flags/{kind}'],
  ),
};
