import {
  afterStep,
  type BatchState,
  newBatch,
  nextStep,
  STORE_STEPS,
  type Step,
  type StoreStep,
  TAKE_OVER_STEPS,
  type TakeOverStep,
} from '../../protocol/steps.ts';

/** The parts of the protocol that can be left out or changed, to check that the model notices. */
export interface Variant {
  readonly takeOverSteps: readonly TakeOverStep[];
  /** The step that is taken where the protocol says `step`. */
  readonly performs: (step: Step, state: BatchState) => Step;
  /** Whether repeats of stored events are looked for. */
  readonly looksUp: boolean;
  /** Whether the insert fails when a newer epoch is recorded. */
  readonly fenced: boolean;
  /** Whether a batch whose state is unclear ends what it has running. */
  readonly endsOwn: boolean;
  /** Whether it closes its session, too, so that nothing can begin in it any more. */
  readonly closesSession: boolean;
  /** Whether rows are stored only in the generation in which they were fetched. */
  readonly dropsStaleFetches: boolean;
  /** Whether a hidden event does not count as an original when repeats are looked for. */
  readonly hidesOriginals: boolean;
  /** Whether the deletions of the stored events' users are asked for that, and not only those of the batch's users. */
  readonly asksStoredUsers: boolean;
  /** Whether a partition is opened only if the last stored record still stands in its log. */
  readonly checksFingerprint: boolean;
  /** Whether the row before the next offset is read when a partition is opened, wherever it goes on. */
  readonly readsRowBefore: boolean;
  /** Whether that row is compared with the log again when the leader epoch of fetched rows rises. */
  readonly checksLeaderEpoch: boolean;
  /** Whether the position is stored before the commit, and not after it. */
  readonly storesPositionFirst: boolean;
  /** Whether a halt is recorded in ClickHouse. */
  readonly recordsHalt: boolean;
  /** Whether the other partitions go on when one is halted. */
  readonly haltsAlone: boolean;
}

export const PROTOCOL: Variant = {
  takeOverSteps: TAKE_OVER_STEPS,
  performs: (step) => step,
  looksUp: true,
  fenced: true,
  endsOwn: true,
  closesSession: true,
  dropsStaleFetches: true,
  hidesOriginals: true,
  asksStoredUsers: true,
  checksFingerprint: true,
  readsRowBefore: true,
  checksLeaderEpoch: true,
  storesPositionFirst: true,
  recordsHalt: true,
  haltsAlone: true,
};

/** Returns the protocol with something left out or changed. */
export function changed(change: Partial<Variant>): Variant {
  return { ...PROTOCOL, ...change };
}

/** Returns the protocol with one step moved right behind another one, in batches that need both. */
export function moved(step: StoreStep, behind: StoreStep): Variant {
  const others: StoreStep[] = STORE_STEPS.filter((other) => other !== step);
  const order: readonly Step[] = others.toSpliced(others.indexOf(behind) + 1, 0, step);

  function performs(nominal: Step, state: BatchState): Step {
    const planned = plan(state);
    const place = planned.indexOf(nominal);
    return planned.toSorted((a, b) => order.indexOf(a) - order.indexOf(b))[place] ?? nominal;
  }
  return changed({ performs });
}

/** Returns the protocol with the commit in place of a step, so that the steps from there on are never done. */
export function commitsBefore(step: Step): Variant {
  return changed({ performs: (nominal) => (nominal === step ? 'commit' : nominal) });
}

/** Returns the steps that store a batch, in the protocol's order. */
function plan(state: BatchState): Step[] {
  const steps: Step[] = [];
  let next = newBatch({ ...state, hasDeadLetters: false });
  for (let step = nextStep(next); step !== 'commit'; step = nextStep(next)) {
    steps.push(step);
    next = afterStep(next, step);
  }
  return steps;
}
