import { ArgumentsError } from '@sluice/shared/config/command-line';
import { describe, expect, test } from 'vitest';
import { parse } from './audit.ts';
import type { PartitionLog } from './topic-logs.ts';
import { balancedThrough, decideWindow } from './window.ts';

const at = (time: string) => Date.parse(`2026-11-30T${time}Z`);

const log = (values: Partial<PartitionLog> = {}): PartitionLog => ({
  ...{ role: 'events', topic: 'sluice.events', partition: 0, low: 0n, high: 10n, firstMs: at('03:30'), wholeFromMs: 0 },
  ...values,
});

const NOTHING_WANTED = { sinceMs: undefined, untilMs: undefined };

function window(logs: readonly PartitionLog[], wanted: Partial<Parameters<typeof decideWindow>[1]>, balanced?: string) {
  const found = decideWindow(logs, { ...NOTHING_WANTED, ...wanted }, balanced ? at(balanced) : undefined, at('12:05'));
  const text = (ms: number) => new Date(ms).toISOString().slice(11, 16);
  return found && [text(found.window.sinceMs), text(found.window.untilMs), found.notes.length];
}

test('an audit goes from where the last one ended to the last hour that has been over for ten minutes', () => {
  expect(window([log()], {})).toEqual(['03:00', '11:00', 0]);
  expect(window([log()], {}, '09:00')).toEqual(['09:00', '11:00', 0]);
  expect(window([log()], {}, '11:00')).toBeUndefined();
  expect(window([log({ firstMs: undefined })], {})).toBeUndefined();
});

test('what a log has lost is left out, and said where it was asked for', () => {
  const cut = log({ low: 5n, wholeFromMs: at('08:20') });
  expect(window([log(), cut], {})).toEqual(['09:00', '11:00', 0]);
  expect(window([log(), cut], {}, '05:00')).toEqual(['09:00', '11:00', 1]);
  expect(window([log(), cut], { sinceMs: at('07:00') })).toEqual(['09:00', '11:00', 1]);
  expect(() => window([cut], { sinceMs: at('06:00'), untilMs: at('08:00') })).toThrow('no longer has');
});

test('an audit that leaves a gap does not count, unless the log had no more', () => {
  const audit = (began: number, ended: number, balanced = ended, was_cut: 0 | 1 = 0) => ({
    began,
    ended,
    balanced,
    was_cut,
  });
  expect(balancedThrough([])).toBeUndefined();
  expect(balancedThrough([audit(1, 5), audit(5, 9, 7), audit(11, 12)])).toBe(7_000);
  expect(balancedThrough([audit(1, 5), audit(2, 3), audit(5, 9)])).toBe(9_000);
  expect(balancedThrough([audit(1, 5, 2), audit(6, 9, 9, 1)])).toBe(9_000);
});

test('an hour that is not over is refused', () => {
  expect(window([log()], { untilMs: at('11:59') })).toEqual(['03:00', '11:00', 0]);
  expect(() => window([log()], { untilMs: at('12:00') })).toThrow('at most 2026-11-30 11:00 UTC');
});

describe('arguments', () => {
  test('are read', () => {
    const args = [
      '--since',
      '2h',
      '--until',
      '2026-11-30T11:00Z',
      '--workspace',
      'acme',
      '--share',
      '2/8',
      '--rate',
      '0',
    ];
    expect(parse(args, at('12:05'))).toMatchObject({
      ...{ sinceMs: at('10:05'), untilMs: at('11:00'), workspace: 'acme', share: 2, shares: 8, rate: 0, json: false },
    });
    expect(parse([], 0)).toMatchObject({ workspace: '', share: 1, shares: 1, rate: 25, work: '', server: '' });
  });

  test('that are wrong are named, all of them', () => {
    const args = ['--since', 'yesterday', '--workspace', '../x', '--share', '9/8', '--rate', '-1x'];
    const parsing = () => parse(args.with(-1, 'x'), 0);
    expect(parsing).toThrow(ArgumentsError);
    for (const option of ['--since', '--workspace', '--share', '--rate']) expect(parsing).toThrow(option);
  });
});
