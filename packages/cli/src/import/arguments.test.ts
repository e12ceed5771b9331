import { ArgumentsError } from '@sluice/shared/config/command-line';
import { expect, test } from 'vitest';
import { parseImportArguments } from './arguments.ts';

test('a file alone is enough', () => {
  expect(parseImportArguments(['data/commits.ndjson.gz'], '/home/ada')).toEqual({
    file: '/home/ada/data/commits.ndjson.gz',
    format: 'native',
    url: new URL('http://127.0.0.1:4000'),
    key: undefined,
    concurrency: 32,
    refusedFile: '/home/ada/commits.ndjson.gz.refused.txt',
    giveUpAfterMs: 60_000,
  });
});

test('every option is followed', () => {
  const args = [
    '--format',
    'segment',
    '--url',
    'https://in.example/x',
    '--key',
    'k',
    '--concurrency',
    '5',
    '--give-up-after',
    '0',
  ];
  expect(parseImportArguments([...args, '--refused', 'r.txt', '-'], '/home/ada')).toEqual({
    file: '-',
    format: 'segment',
    url: new URL('https://in.example/x'),
    key: 'k',
    concurrency: 5,
    refusedFile: '/home/ada/r.txt',
    giveUpAfterMs: 0,
  });
});

test.each([
  [[]],
  [['a', 'b']],
  [['--nope', 'a']],
  [['--format', 'rudderstack', 'a']],
  [['--format', 'constructor', 'a']],
  [['--url', 'localhost:4000', 'a']],
  [['--concurrency', '0', 'a']],
  [['--concurrency', 'many', 'a']],
  [['--give-up-after', '-1', 'a']],
  [['--refused', './x/../a', 'a']],
])('%j is refused', (args) => {
  expect(() => parseImportArguments(args, '/home/ada')).toThrow(ArgumentsError);
});

test('every error is named', () => {
  const args = ['--format', 'x', '--url', 'x', '--concurrency', 'x', '--give-up-after', 'x'];
  expect(() => parseImportArguments(args, '/')).toThrow(
    /FILE.*\n--format.*\n--url.*\n--concurrency.*\n--give-up-after/,
  );
});
