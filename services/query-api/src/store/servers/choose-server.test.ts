import { describe, expect, test } from 'vitest';
import { chooseServer, type ServerStatus } from './choose-server.ts';

const LIMITS = { lagMsMax: 5_000, staleMsMax: 60_000, isOfRange: false };

const status = (name: string, given: Partial<ServerStatus> = {}): ServerStatus => ({
  ...{ name, unusable: undefined, answers: true, isIncomplete: false, behindMs: 1_000 },
  ...given,
});

const choose = (before: string | undefined, ...statuses: ServerStatus[]) => {
  const choice = chooseServer(statuses, before, LIMITS);
  return 'name' in choice ? choice.name : choice.reason;
};

const away = { unusable: 'does not respond', answers: false } as const;

describe('of several mirrors', () => {
  test('the first is read, and from then on the same', () => {
    expect(choose(undefined, status('a'), status('b'))).toBe('a');
    expect(choose('b', status('a'), status('b'))).toBe('b');
  });

  test('another is read while that one cannot be, or lags too far behind the freshest', () => {
    expect(choose('a', status('a', away), status('b'))).toBe('b');
    expect(choose('a', status('a', { behindMs: 6_000 }), status('b'))).toBe('a');
    expect(choose('a', status('a', { behindMs: 6_001 }), status('b'))).toBe('b');
    expect(choose('a', status('a', { behindMs: Number.POSITIVE_INFINITY }), status('b'))).toBe('b');
  });

  test('the same is read while all are as far behind', () => {
    const behindMs = 3_600_000;
    expect(choose('b', status('a', { behindMs }), status('b', { behindMs: behindMs + 5_000 }))).toBe('b');
    const unknown = { behindMs: Number.POSITIVE_INFINITY };
    expect(choose('b', status('a', unknown), status('b', unknown))).toBe('b');
  });

  test('one that lacks messages is read only where no other one can be', () => {
    const incomplete = { isIncomplete: true };
    expect(choose('a', status('a', incomplete), status('b'))).toBe('b');
    expect(choose('a', status('a', incomplete), status('b', { behindMs: 50_000 }))).toBe('b');
    expect(choose('a', status('a', incomplete), status('b', away))).toBe('a');
  });
});

test('one that is far behind is not read while another one does not answer, which may have deletions that it lacks', () => {
  const late = { behindMs: 60_001 };
  expect(choose('a', status('a', late), status('b', away))).toBe('a is too far behind, and others do not answer');
  expect(choose('a', status('a', { behindMs: 60_000 }), status('b', away))).toBe('a');
  expect(choose('a', status('a', late), status('b', late))).toBe('a');
});

test('where none can be read, it is said why', () => {
  expect(choose('a', status('a', away), status('b', { unusable: 'is being filled' }))).toBe(
    'a: does not respond; b: is being filled',
  );
});

test('a replica that has long lacked what another one has is not read, also where that one cannot be', () => {
  const of = (areReplicas: boolean, behindMs: number) => {
    const limits = { lagMsMax: 5_000, staleMsMax: 60_000, isOfRange: false, areReplicas };
    return chooseServer([status('a', { behindMs }), status('b', { unusable: 'has failed' })], 'a', limits);
  };
  expect(of(true, 61_001)).toEqual({ reason: 'a is too far behind others, which cannot be read' });
  expect(of(true, 61_000)).toEqual({ name: 'a' });
  // A mirror has erased for itself what it has.
  expect(of(false, 61_001)).toEqual({ name: 'a' });
});
