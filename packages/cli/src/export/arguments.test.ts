import { expect, test } from 'vitest';
import { parseExportArguments } from './arguments.ts';

test('a start alone is enough', () => {
  expect(parseExportArguments(['startDate=2026-03-01'], '/home/ada')).toEqual({
    subject: 'events',
    file: '/home/ada/events.ndjson',
    format: 'ndjson',
    url: new URL('http://127.0.0.1:4001'),
    key: undefined,
    parameters: new Map([['startDate', '2026-03-01']]),
    giveUpAfterMs: 60_000,
  });
});

test('every option is followed, and a value may hold an equals sign', () => {
  const options = ['--out', 'x.csv', '--format', 'csv', '--url', 'https://out.example/x', '--key', 'k'];
  const parameters = ['startDate=2026-03-01', 'event=a=b', 'properties.amount[gte]=10'];
  expect(parseExportArguments([...options, '--give-up-after', '0', ...parameters], '/home/ada')).toEqual({
    subject: 'events',
    file: '/home/ada/x.csv',
    format: 'csv',
    url: new URL('https://out.example/x'),
    key: 'k',
    parameters: new Map([
      ['startDate', '2026-03-01'],
      ['event', 'a=b'],
      ['properties.amount[gte]', '10'],
    ]),
    giveUpAfterMs: 0,
  });
});

test('users and organizations need no start, and have no other format', () => {
  expect(parseExportArguments(['users', 'properties.plan=pro'], '/home/ada')).toMatchObject({
    ...{ subject: 'users', file: '/home/ada/users.ndjson', format: 'ndjson' },
    parameters: new Map([['properties.plan', 'pro']]),
  });
  expect(parseExportArguments(['organizations'], '/').file).toBe('/organizations.ndjson');
  expect(() => parseExportArguments(['users', '--format', 'csv', 'cursor=x', 'users'], '/')).toThrow(
    /^--format of users must be ndjson\.\ncursor is set .*\nusers is not .*$/,
  );
});

test('every error is named', () => {
  const args = ['--format', 'x', '--url', 'x', '--give-up-after', 'x', 'one', 'after=x', 'event=a', 'event=b'];
  const errors = [
    '--format .*',
    '--url .*',
    'one is not .*',
    'after is set .*',
    'event is given twice.',
    'startDate.*',
  ];
  expect(() => parseExportArguments(args, '/')).toThrow(new RegExp(`^${errors.join('\\n')}\\n--give-up-after .*$`));
});
