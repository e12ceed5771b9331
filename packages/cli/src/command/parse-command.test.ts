import { ArgumentsError } from '@sluice/shared/config/command-line';
import { describe, expect, test } from 'vitest';
import { parseCommand } from './parse-command.ts';

const syntax = {
  commands: { status: 'none', list: 'none, or --all', show: 'one', halt: 'some, or --all' },
  texts: { limit: '100' },
  flags: ['yes'],
  usage: 'usage',
} as const;

const parse = (...args: string[]) => parseCommand(args, syntax);

test('a command comes with its operands and options, or their defaults', () => {
  expect(parse('halt', 'a', 'b', '--limit', '5', '--yes')).toEqual({
    command: 'halt',
    operands: ['a', 'b'],
    all: false,
    texts: { limit: '5' },
    flags: { yes: true },
  });
  expect(parse('status')).toMatchObject({ all: false, texts: { limit: '100' }, flags: { yes: false } });
});

describe('operands that fit their command are taken', () => {
  test.each([['status'], ['list'], ['list --all'], ['show a'], ['halt a'], ['halt a b'], ['halt --all']])(
    '%s',
    (line) => {
      expect(parse(...line.split(' ')).command).toBe(line.split(' ')[0]);
    },
  );
});

describe('other arguments are refused', () => {
  test.each([
    [''],
    ['unknown'],
    ['status a'],
    ['status --all'],
    ['list a'],
    ['show'],
    ['show a b'],
    ['show a --all'],
    ['halt'],
    ['halt a --all'],
    ['status --unknown'],
  ])('"%s"', (line) => {
    expect(() => parse(...line.split(' ').filter((part) => part !== ''))).toThrow(ArgumentsError);
  });
});
