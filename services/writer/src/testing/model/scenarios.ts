import type { Row, Scenario } from './scenario.ts';

type EventOptions = Partial<{ at: number; user: string; month: number; stamped: boolean }>;

function event(
  key: string,
  time: number,
  { at = time, user = 'u', month = 1, stamped = false }: EventOptions = {},
): Row {
  return { kind: 'event', key, time, at, user, month, stamped };
}

const set = (user: string, at: number): Row => ({ kind: 'set', user, at });
const deletion = (user: string, at: number): Row => ({ kind: 'deletion', user, at });
const poison = (key: string): Row => ({ kind: 'poison', key });

const ONE_WRITER = { writers: 1, assignments: [[0]] } as const;

/** The partition may move between two writers. */
const TWO_WRITERS = { writers: 2, assignments: [[0], [1]] } as const;

/** Three rows, stored in batches of one or two. Then the log is cut off after the first, and grows again with others. */
const CUT_LOG = [event('a', 1), event('b', 2), event('c', 3)];
const REGROWN = [event('x', 4), event('y', 5), event('z', 6)];

/** Small worlds that are explored completely. Each is as small as its purpose allows. */
export const SCENARIOS = {
  handOver: {
    ...TWO_WRITERS,
    name: 'a partition moves twice between two writers',
    logs: [[event('a', 1)]],
    fetchSizes: [1],
    faults: { 'partitions move': 2 },
  },
  lostResponse: {
    ...TWO_WRITERS,
    name: 'a response is lost and a partition moves',
    logs: [[event('a', 1)]],
    fetchSizes: [1],
    faults: { 'partitions move': 1, 'a response is lost': 1 },
  },
  forgottenGroup: {
    ...TWO_WRITERS,
    name: 'the group is forgotten after a partition has moved',
    logs: [[event('a', 1)]],
    fetchSizes: [1],
    faults: { 'partitions move': 1, 'the group is forgotten': 1 },
  },
  lostCommit: {
    ...ONE_WRITER,
    name: 'the response to a commit is lost, and batches differ afterwards',
    logs: [[event('a', 1), event('b', 2, { month: 2 }), event('a', 1, { at: 3 })]],
    fetchSizes: [1, 2, 3],
    faults: { 'the response to a commit is lost': 2, 'a writer is killed': 1 },
  },
  months: {
    ...ONE_WRITER,
    name: 'ClickHouse and the writer are killed between the months of an insert',
    logs: [[event('a', 1), event('b', 2, { month: 2 }), event('c', 3, { month: 3 })]],
    fetchSizes: [3, 1],
    faults: { 'ClickHouse is killed': 2, 'a writer is killed': 1 },
  },
  deletedUser: {
    ...ONE_WRITER,
    name: 'a user is deleted between two sendings of an event, and erased',
    logs: [
      [
        set('u', 1),
        event('a', 1),
        deletion('u', 2),
        event('a', 1, { at: 3 }),
        event('b', 4, { user: 'v' }),
        set('u', 5),
      ],
    ],
    fetchSizes: [2, 6],
    faults: { 'a response is lost': 1 },
    erases: true,
  },
  stampedEvents: {
    ...ONE_WRITER,
    name: 'stamped events are sent again, before and after their user is deleted',
    logs: [
      [
        event('s', 1, { stamped: true }),
        deletion('u', 2),
        event('s', 3, { stamped: true }),
        event('s', 4, { stamped: true }),
        event('t', 5, { stamped: true, user: 'v' }),
        event('t', 6, { stamped: true, user: 'v' }),
      ],
    ],
    fetchSizes: [1, 2, 6],
    faults: { 'a writer is killed': 1 },
    erases: true,
  },
  anotherUser: {
    ...ONE_WRITER,
    name: 'an event is sent again for another user, before and after the deletion of the first',
    logs: [
      [
        event('a', 1),
        event('a', 1, { at: 2, user: 'v' }),
        deletion('u', 3),
        event('a', 1, { at: 4, user: 'w' }),
        event('a', 1, { at: 5, user: 'v' }),
      ],
    ],
    fetchSizes: [1, 2, 5],
    faults: { 'a writer is killed': 1 },
    erases: true,
  },
  badRow: {
    ...ONE_WRITER,
    name: 'a row cannot be stored',
    logs: [[poison('p'), event('a', 1)]],
    fetchSizes: [1, 2],
    faults: { 'a response is lost': 1, 'a writer is killed': 1 },
  },
  // Both writers take over. One that reads the newest epoch late, and is a member again, begins a new incarnation. This
  // fences the other one, which joins again, and all of it may be repeated.
  severalBrokers: {
    name: 'a partition moves while a fetch of it is under way, and another stays',
    writers: 2,
    logs: [[event('a', 1)], []],
    assignments: [
      [0, 0],
      [1, 0],
    ],
    fetchSizes: [1],
    faults: { 'partitions move': 1 },
    endless: true,
  },
  cutLog: {
    ...ONE_WRITER,
    name: 'a log is cut off and grows again, and the writer is killed',
    logs: [CUT_LOG],
    cut: { keep: 1, rows: REGROWN },
    fetchSizes: [2, 1],
    faults: { 'a log is cut off': 1, 'a writer is killed': 1 },
  },
  cutLogMoves: {
    ...TWO_WRITERS,
    name: 'a log is cut off while its partition moves',
    logs: [CUT_LOG.slice(0, 2)],
    cut: { keep: 1, rows: REGROWN.slice(0, 2) },
    fetchSizes: [2],
    faults: { 'a log is cut off': 1, 'partitions move': 1 },
  },
  cutLogResumed: {
    ...ONE_WRITER,
    name: 'a log is cut off, and an operator gives up two offsets',
    logs: [CUT_LOG],
    cut: { keep: 1, rows: REGROWN, resumesAt: 2 },
    fetchSizes: [2, 1],
    faults: { 'a log is cut off': 1, 'a response is lost': 1 },
  },
  cutLogOfTwo: {
    ...ONE_WRITER,
    name: 'one of two logs is cut off, and no operator comes',
    logs: [CUT_LOG.slice(0, 2), [event('q', 1), event('r', 2)]],
    assignments: [[0, 0]],
    cut: { keep: 1, rows: REGROWN.slice(0, 2), resumesAt: 'never' },
    fetchSizes: [2],
    faults: { 'a log is cut off': 1, 'a writer is killed': 1 },
  },
  cutLogOfOldVersion: {
    ...ONE_WRITER,
    name: 'a log is cut off, of which an older version has stored two rows',
    logs: [CUT_LOG],
    cut: { keep: 1, rows: REGROWN, growsLate: true },
    upgraded: 2,
    fetchSizes: [2],
    faults: { 'a log is cut off': 1, 'a writer is killed': 1 },
  },
} satisfies Record<string, Scenario>;

/**
 * A larger world for random schedules: repeats of a producer, a batch over several months, a row that cannot be stored,
 * deletions that arrive before what they delete, users who return, events sent again for another user, stamped ones, a log that is cut off.
 */
export const LARGE_WORLD: Scenario = {
  name: 'a larger world',
  writers: 3,
  logs: [
    [
      event('a', 1),
      event('b', 2, { month: 2 }),
      event('a', 1, { at: 3 }),
      poison('p'),
      set('u', 4),
      deletion('w', 10),
      event('c', 5),
      event('d', 6, { month: 3 }),
      event('b', 2, { month: 2, at: 7 }),
      event('s', 12, { user: 'w', stamped: true }),
      event('s', 13, { user: 'w', stamped: true }),
      event('a', 1, { at: 14, user: 'x' }),
    ],
    [
      event('v', 1, { user: 'w' }),
      event('t', 2, { user: 'w', stamped: true }),
      set('w', 2),
      event('x', 3, { month: 2 }),
      deletion('w', 10),
      event('y', 4, { user: 'w' }),
      event('v', 1, { user: 'w', at: 11 }),
      event('t', 11, { user: 'w', stamped: true }),
      event('x', 3, { month: 2, at: 12 }),
      set('w', 13),
      event('z', 14, { month: 3 }),
      event('y', 4, { at: 15, user: 'x' }),
    ],
  ],
  cut: {
    keep: 7,
    rows: [
      event('e', 15),
      event('f', 16, { month: 2 }),
      event('g', 17),
      event('h', 18),
      event('i', 19),
      event('j', 20),
    ],
  },
  assignments: [
    [0, 1],
    [1, 0],
    [2, 2],
    [1, 2],
    [0, 0],
  ],
  fetchSizes: [1, 2, 5],
  faults: {},
  erases: true,
};
