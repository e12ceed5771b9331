/**
 * What a writer does with its epoch before it stores anything, in this order: an older insert that begins before the
 * epoch is recorded is there to be ended afterwards, and one that begins later fails.
 */
export const TAKE_OVER_STEPS = ['record epoch', 'end older statements'] as const;

/** What is done to store a batch, in this order. Everything before the last insert can be repeated without effect. */
export const STORE_STEPS = [
  'load events',
  'load changes',
  'store deletions',
  'store properties',
  'store sightings',
  'store seen in changes',
  'find repeats',
  'store seen in events',
  'store events',
  'close session',
] as const;

export type TakeOverStep = (typeof TAKE_OVER_STEPS)[number];
export type StoreStep = (typeof STORE_STEPS)[number];

/** What comes next for a batch. After `commit` its offsets may be committed. */
export type Step = StoreStep | 'end own statements' | 'isolate bad rows' | 'keep dead letters' | 'commit';

/** What a batch holds. */
export interface BatchContents {
  readonly hasEvents: boolean;
  readonly hasChanges: boolean;
  /** Rows were found that cannot be stored, and left out of the others. */
  readonly hasDeadLetters: boolean;
}

/** What is known of a batch. */
export interface BatchState extends BatchContents {
  /** ClickHouse did not take the rows: some of them cannot be stored. */
  readonly hasBadRows: boolean;
  /** A statement failed, or its answer did not come: it may be running still, or even begin later. */
  readonly unclear: boolean;
  /** How many of `STORE_STEPS` are done. */
  readonly done: number;
}

export function newBatch(contents: BatchContents): BatchState {
  return { ...contents, hasBadRows: false, unclear: false, done: 0 };
}

/** What to do next for a batch. */
export function nextStep(state: BatchState): Step {
  if (state.unclear) return 'end own statements';
  if (state.hasBadRows) return 'isolate bad rows';
  if (state.hasDeadLetters) return 'keep dead letters';
  return STORE_STEPS.slice(state.done).find((step) => concerns(step, state)) ?? 'commit';
}

/** What is known after a step that succeeded. After `isolate bad rows` it is a new batch of what is left. */
export function afterStep(state: BatchState, step: Step): BatchState {
  switch (step) {
    case 'end own statements':
      return { ...state, unclear: false };
    case 'keep dead letters':
      return { ...state, hasDeadLetters: false };
    case 'isolate bad rows':
    case 'commit':
      return state;
    default:
      return { ...state, done: STORE_STEPS.indexOf(step) + 1 };
  }
}

/** What is known after a load that ClickHouse did not take because of its rows. */
export function afterRefusal(state: BatchState): BatchState {
  return { ...state, hasBadRows: true, done: 0 };
}

/** What is known after any other failure: what had been staged is given up, and everything is done again. */
export function afterFailure(state: BatchState): BatchState {
  return { ...state, unclear: true, done: 0 };
}

function concerns(step: StoreStep, { hasEvents, hasChanges }: BatchContents): boolean {
  switch (step) {
    case 'load changes':
    case 'store deletions':
    case 'store properties':
    case 'store sightings':
    case 'store seen in changes':
      return hasChanges;
    case 'load events':
    case 'find repeats':
    case 'store seen in events':
    case 'store events':
      return hasEvents;
    case 'close session':
      return hasEvents || hasChanges;
  }
}
