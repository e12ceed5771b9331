import {
  afterStep,
  type BatchState,
  newBatch,
  nextStep,
  STORE_STEPS,
  type Step,
  type StoreStep,
} from '../../protocol.ts';
import { PROTOCOL, type Variant } from './rules.ts';

/** The protocol with something left out or changed. */
export function changed(change: Partial<Variant>): Variant {
  return { ...PROTOCOL, ...change };
}

/** The protocol with a step moved to the place right behind another one, in batches that need both. */
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

/** The protocol with the commit in the place of a step, so that what comes from there on is never done. */
export function commitsBefore(step: Step): Variant {
  return changed({ performs: (nominal) => (nominal === step ? 'commit' : nominal) });
}

/** The steps that store a batch, in the protocol's order. */
function plan(state: BatchState): Step[] {
  const steps: Step[] = [];
  let next = newBatch({ ...state, hasDeadLetters: false });
  for (let step = nextStep(next); step !== 'commit'; step = nextStep(next)) {
    steps.push(step);
    next = afterStep(next, step);
  }
  return steps;
}
