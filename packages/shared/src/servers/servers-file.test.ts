import { describe, expect, test } from 'vitest';
import { endErrors, isWithin, parseRange } from './partition-range.ts';
import { parseServersFile, readingErrors, ServersFileError } from './servers-file.ts';

const DEFAULTS = { database: 'sluice', group: 'sluice-writer' };

const parse = (...servers: object[]) => parseServersFile(JSON.stringify({ servers }), DEFAULTS);

function errorsOf(text: string): readonly string[] {
  try {
    parseServersFile(text, DEFAULTS);
    return [];
  } catch (error) {
    if (error instanceof ServersFileError) return error.errors;
    throw error;
  }
}

const errors = (...servers: object[]) => errorsOf(JSON.stringify({ servers }));

const a1 = { name: 'a1', url: 'http://ch-a1:8123' };
const a2 = { name: 'a2', url: 'https://ch-a2:8443' };
const b1 = { name: 'b1', url: 'http://ch-b1:8123' };

test('a server has a group and a database by default, all partitions, and is read', () => {
  const defaults = { database: 'sluice', partitions: undefined, serves: true };
  expect(parse(a1, { ...a2, group: 'sluice-writer', database: 'other' })).toEqual([
    { ...a1, ...defaults, native: 'ch-a1:9000', nativeTls: false, group: 'sluice-writer.a1' },
    { ...a2, ...defaults, native: 'ch-a2:9440', nativeTls: true, group: 'sluice-writer', database: 'other' },
  ]);
});

test('the address of the native protocol is that of the url with the usual port, or one of its own', () => {
  const native = (entry: object) => parse({ ...a1, ...entry }).map((server) => [server.native, server.nativeTls])[0];
  expect(native({ url: 'https://user:secret@10.0.0.1:8443/path' })).toEqual(['10.0.0.1:9440', true]);
  expect(native({ url: 'http://[::1]:8123' })).toEqual(['[::1]:9000', false]);
  expect(native({ nativeTls: true })).toEqual(['ch-a1:9440', true]);
  expect(native({ url: a2.url, native: 'inner:9001', nativeTls: false })).toEqual(['inner:9001', false]);
  for (const address of ['inner', 'in{1..3}:9000', 'a:1,b:2', 'a|b:9000', "a':9000", ':9000']) {
    expect(errors({ ...a1, native: address })).toEqual([
      'servers.0.native: must be a host and a port, such as ch-a1:9000',
    ]);
  }
});

test('servers have ranges of partitions, equal or apart, and one that is not read may have any', () => {
  const ranges = [
    { ...a1, partitions: '0-23' },
    { ...a2, partitions: '0-23' },
    { ...b1, partitions: '24-47' },
    { ...b1, name: 'b2', url: 'http://ch-b2:8123', partitions: '12-30', serves: false },
  ];
  expect(parse(...ranges).map(({ partitions }) => partitions)).toEqual([
    { first: 0, last: 23 },
    { first: 0, last: 23 },
    { first: 24, last: 47 },
    { first: 12, last: 30 },
  ]);
});

describe('a file is refused, with all of its errors,', () => {
  test.each([
    ['that is not JSON', '{', ['the file is not JSON']],
    ['without servers', '{"servers":[]}', ['servers: must name a server']],
    [
      'with unknown members',
      '{"server":[]}',
      ['servers: Invalid input: expected array, received undefined', 'the file: Unrecognized key: "server"'],
    ],
  ])('%s', (_, text, expected) => {
    expect(errorsOf(text)).toEqual(expected);
  });

  test('whose entries are wrong', () => {
    const wrong = {
      name: 'A 1',
      url: 'ftp://x',
      partitions: '5-2',
      serves: 'no',
      native: 'x',
      user: 'x',
      database: 'a b',
      group: '',
    };
    expect(errors(wrong, { name: 'a2' })).toEqual([
      'servers.0.name: must be 1 to 32 small letters, digits and hyphens',
      'servers.0.url: must be an http:// or https:// address',
      'servers.0.native: must be a host and a port, such as ch-a1:9000',
      'servers.0.database: must be a plain identifier',
      'servers.0.group: must not be empty',
      'servers.0.partitions: must be a range such as 0-23',
      'servers.0.serves: Invalid input: expected boolean, received string',
      'servers.0: Unrecognized key: "user"',
      'servers.1.url: must be an http:// or https:// address',
    ]);
  });

  test('in which a name, a group or a database is that of two servers', () => {
    expect(errors(a1, { ...a2, name: 'a1' }, { ...b1, url: 'http://CH-A1:8123/', group: 'sluice-writer.a1' })).toEqual([
      'servers.1.name: a1 is that of servers.0 as well',
      'servers.1.group: sluice-writer.a1 is that of servers.0 as well',
      'servers.2.group: sluice-writer.a1 is that of servers.0 as well',
      'servers.2.url: ch-a1:8123 (database sluice) is that of servers.0 as well',
    ]);
    expect(errors(a1, { ...a1, name: 'a2', database: 'other' })).toEqual([]);
  });

  test('also where a member is unknown or wrong: it hides no other error', () => {
    const unknown = { ...a1, partitions: '0-23', colour: 'red' };
    expect(errors(unknown, { ...a2, name: 'a1', partitions: '20-47', database: 'a b' })).toEqual([
      'servers.0: Unrecognized key: "colour"',
      'servers.1.database: must be a plain identifier',
      'servers.1.name: a1 is that of servers.0 as well',
      'servers.1.group: sluice-writer.a1 is that of servers.0 as well',
      'servers: a1 (0-23) and a1 (20-47) share partitions; ranges must be equal, or have none in common',
    ]);
    expect(errorsOf(JSON.stringify({ version: 1, servers: [{ ...a1, partitions: '4-7' }] }))).toEqual([
      'the file: Unrecognized key: "version"',
      'servers: no server that is read has the partitions 0-3',
    ]);
    // Which partitions a server has is not known here.
    expect(errors({ ...a1, partitions: '4' }, { ...b1, partitions: '8-9' })).toEqual([
      'servers.0.partitions: must be a range such as 0-23',
    ]);
  });

  test('that leaves partitions out, or has some twice', () => {
    const share = 'share partitions; ranges must be equal, or have none in common';
    expect(errors({ ...a1, partitions: '4-23' }, { ...b1, partitions: '30-47' })).toEqual([
      'servers: no server that is read has the partitions 0-3',
      'servers: no server that is read has the partitions 24-29',
    ]);
    expect(errors({ ...a1, partitions: '0-23' }, { ...b1, partitions: '20-47' })).toEqual([
      `servers: a1 (0-23) and b1 (20-47) ${share}`,
    ]);
    expect(errors(a1, { ...b1, partitions: '24-47' })).toEqual([`servers: a1 (all) and b1 (24-47) ${share}`]);
    expect(errors({ ...a1, serves: false })).toEqual([
      'servers: at least one must be read, which is the default of serves',
    ]);
  });

  test('once the number of partitions is known that its ranges do not reach, or exceed', () => {
    const servers = parse({ ...a1, partitions: '0-23' }, { ...b1, partitions: '24-47' });
    expect(endErrors(servers, 48)).toEqual([]);
    expect(endErrors(servers, 96)).toEqual([
      'servers: the ranges end with partition 47, and the last of the topics is 95',
    ]);
    expect(endErrors(parse(a1), 96)).toEqual([]);
  });
});

test('while one server is replaced by others with ranges, all of its files are valid, and not one that is read beside them', () => {
  const unread = { serves: false };
  const [first, second] = [
    { ...a2, partitions: '0-23' },
    { ...b1, partitions: '24-47' },
  ];
  for (const servers of [
    [a1, { ...first, ...unread }, { ...second, ...unread }],
    [{ ...a1, ...unread }, first, second],
    [first, second],
  ]) {
    expect(errors(...servers)).toEqual([]);
  }
  expect(errors(a1, first, second)).not.toEqual([]);
});

test('a range is within one that has all of its partitions', () => {
  const within = (range: string, other: string) => isWithin(parseRange(range), parseRange(other));
  expect(within('0-23', 'all')).toBe(true);
  expect(within('all', 'all')).toBe(true);
  expect(within('all', '0-23')).toBe(false);
  expect(within('0-11', '0-23')).toBe(true);
  expect(within('0-23', '0-23')).toBe(true);
  for (const range of ['0-24', '20-30', '24-47']) expect(within(range, '0-23')).toBe(false);
  expect(within('0-47', '10-20')).toBe(false);
});

test('servers of several ranges need the same database and the same TLS to be read together', () => {
  const other = { ...b1, url: 'http://user:secret@ch-b1:8123', database: 'other', nativeTls: true };
  expect(readingErrors(parse({ ...a1, partitions: '0-23' }, { ...other, partitions: '24-47' }))).toEqual([
    'servers: all that are read need the same database where they have ranges',
    'servers: all that are read need the same nativeTls where they have ranges',
    'servers: where they have ranges, the login is that of the environment, and in no url',
  ]);
  expect(readingErrors(parse({ ...a1, partitions: '0-23' }, { ...b1, partitions: '24-47' }))).toEqual([]);
  expect(readingErrors(parse(a1, other))).toEqual([]);
});
