/*
 * The writers' protocol: in which order a writer does things, so that Kafka and ClickHouse together lose no row and
 * store none twice. Each step has the name of the statement that it runs, where it runs one.
 *
 * Once per assignment, the take-over:
 *
 *   record-epoch ──▶ end-older-statements ──▶ the logs are compared with the stored positions ──▶ batches
 *
 * A partition without a stored position and with a committed offset, or whose log has lost its beginning, is halted:
 * ClickHouse has lost what was stored. A new one gets a position before anything of it is committed. store-positions
 * fails when the position before a batch is not in ClickHouse any more.
 *
 * Then for each batch, from left to right. A batch of events alone skips the steps of changes, and the reverse:
 *
 *   load-events  ─▶ store-deletions        ─▶ find-repeats         ─▶ close-session ─▶ store-positions ─▶ commit
 *   load-changes    store-links               store-seen-in-events
 *        │          store-properties          store-events
 *        │          store-sightings
 *        │          store-seen-in-changes
 *        │
 *        └─ when ClickHouse refuses a row ─▶ isolate-bad-rows ─▶ store-dead-letters ─▶ again, with the good rows
 *
 *   When find-repeats needs a cold volume that does not answer ─▶ find-cold-times ─▶ store-dead-letters ─▶ again, without its events
 *
 *   When any statement fails, or its response is lost ─▶ end-own-statements ─▶ the rows in other batches
 *
 * Only store-events makes events visible, so a batch may be repeated from the start at any time before it. It may even
 * be repeated after it: find-repeats drops the events that are stored already. What must never happen is that somebody
 * else stores the same events between the two, because neither would see the rows of the other. The protocol
 * prevents this in two ways. A writer ends its own statements after an unclear failure. And a new owner of a partition
 * first records its epoch, so that no older insert can begin, and then ends the older inserts that have begun.
 *
 * Example. Writer A owns partition 3 in generation 7 and stores offsets 40 to 49. It sends store-events, and then its
 * machine freezes. Kafka gives the partition to writer B in generation 8. B records epoch 8 and ends A's insert. Two
 * months of the batch were written already, the third was not. The committed offset is still 40, so B reads the
 * offsets 40 to 54 as one batch. Its find-repeats drops the stored events of the two months, and the rest is added. B
 * stores the position 55 and commits it. Then A wakes up and tries its insert again: epoch 8 is recorded, so the insert
 * fails, and A joins the group anew. Each event is stored once.
 *
 * All of it happens at one server, which the epoch names. A load balancer, or a name that was moved, may lead a statement to another
 * one: events would be there, and the position here, and the offset would be committed. Two things prevent that. What names the server is
 * refused by another one: the take-over, the look at the staged rows, dead letters, positions, halts, and the end of a session.
 * And a session stays where it began, so that all of a batch is stored where its rows were looked at. A refused writer joins the group
 * anew, and takes over wherever the address leads by then.
 *
 * Where the server is one of several replicas, its rows come to the others later, and theirs to it, part by part in any order. So the take-over
 * records the epoch and ends older statements at each replica, and then brings the own one level. What a look-up finds may be at the own
 * replica alone: then a second one is brought level before the position is stored. replicas.ts does that.
 *
 * Where one address leads to any of several servers with one storage, no statement may need the one before: the rows of a batch travel with each
 * (carried-tables.ts), and nothing closes a session. What was sent may begin at any later time, at any server. So each statement that stores
 * something looks at the newest epoch, and whether its batch has ended; a batch that has failed is recorded as ended before its
 * statements are, everywhere.
 *
 * `tests/simulation` checks all of this: whole writers run in a simulated world, under thousands of faults.
 */

/**
 * What a writer does with its epoch before it stores anything, in this order. An older insert that begins before the
 * epoch is recorded is running when older statements are ended. One that begins later fails.
 */
export const TAKE_OVER_STEPS = ['record-epoch', 'end-older-statements'] as const;

/**
 * The steps that store a batch, in this order. Every step before `store-events` may be repeated without effect. Repeats are
 * found before users are stored, so that a repeat creates no user, and after deletions: what they hide is not repeated.
 */
export const STORE_STEPS = [
  'load-events',
  'load-changes',
  'store-deletions',
  'store-links',
  'store-properties',
  'store-sightings',
  'store-seen-in-changes',
  'find-repeats',
  'store-seen-in-events',
  'store-events',
  'close-session',
] as const;

export type TakeOverStep = (typeof TAKE_OVER_STEPS)[number];
export type StoreStep = (typeof STORE_STEPS)[number];

/** The next step of a batch. `commit`: every row is stored, so the batch loop stores the positions and commits. */
export type Step = StoreStep | 'isolate-bad-rows' | 'store-dead-letters' | 'commit';

/** What a batch holds. */
export interface BatchContents {
  readonly hasEvents: boolean;
  readonly hasChanges: boolean;
  /** Rows that cannot be stored were found and taken out of the batch, but are not in `dead_letters` yet. */
  readonly hasDeadLetters: boolean;
}

/** What is known of a batch. */
export interface BatchState extends BatchContents {
  /** ClickHouse refused the rows: some of them cannot be stored. */
  readonly hasBadRows: boolean;
  /** How many of `STORE_STEPS` are done. */
  readonly done: number;
}

export function newBatch(contents: BatchContents): BatchState {
  return { ...contents, hasBadRows: false, done: 0 };
}

/** Returns what to do next for a batch. */
export function nextStep(state: BatchState): Step {
  if (state.hasBadRows) return 'isolate-bad-rows';
  if (state.hasDeadLetters) return 'store-dead-letters';
  return STORE_STEPS.slice(state.done).find((step) => concerns(step, state)) ?? 'commit';
}

/** Returns the state after a step that succeeded. After `isolate-bad-rows` the caller begins a new batch of the good rows. */
export function afterStep(state: BatchState, step: Step): BatchState {
  switch (step) {
    case 'store-dead-letters':
      return { ...state, hasDeadLetters: false };
    case 'isolate-bad-rows':
    case 'commit':
      return state;
    default:
      return { ...state, done: STORE_STEPS.indexOf(step) + 1 };
  }
}

/** Returns the state after ClickHouse refused to load the rows. */
export function afterRefusal(state: BatchState): BatchState {
  return { ...state, hasBadRows: true, done: 0 };
}

function concerns(step: StoreStep, { hasEvents, hasChanges }: BatchContents): boolean {
  switch (step) {
    case 'load-changes':
    case 'store-deletions':
    case 'store-links':
    case 'store-properties':
    case 'store-sightings':
    case 'store-seen-in-changes':
      return hasChanges;
    case 'load-events':
    case 'find-repeats':
    case 'store-seen-in-events':
    case 'store-events':
      return hasEvents;
    case 'close-session':
      return hasEvents || hasChanges;
  }
}
