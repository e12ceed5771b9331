import { describe, expect, test } from 'vitest';
import { type BatchState, nextStep, type Step } from './protocol.ts';
import { PROTOCOL, runSchedule, type Variant } from './testing/protocol-model.ts';

const SCHEDULES = 40_000;

/** Runs schedules until one of them shows a fault. */
function explore(variant: Variant): { fault?: string; trace: string[]; schedules: number; faults: number } {
  let faults = 0;
  for (let seed = 1; seed <= SCHEDULES; seed += 1) {
    const outcome = runSchedule(seed, variant);
    faults += outcome.faults;
    if (outcome.fault === undefined) continue;
    const trace: string[] = [];
    runSchedule(seed, variant, trace);
    return { fault: outcome.fault, trace, schedules: seed, faults };
  }
  return { trace: [], schedules: SCHEDULES, faults };
}

test(`under ${SCHEDULES} schedules of crashes nothing is lost, doubled or seen too early`, () => {
  const { fault, trace, schedules, faults } = explore(PROTOCOL);
  console.log(`the writers' protocol: ${schedules} schedules with ${faults} faults`);
  expect(fault, trace.join('\n')).toBeUndefined();
  expect(schedules).toBe(SCHEDULES);
  expect(faults).toBeGreaterThan(10 * SCHEDULES);
}, 120_000);

describe('the model notices when the protocol is', () => {
  const order = (change: (step: Step, state: BatchState) => Step): Variant => ({
    ...PROTOCOL,
    nextStep: (state) => change(nextStep(state), state),
  });

  test.each<[string, Variant, RegExp]>([
    ['without the look-up of what is stored', { ...PROTOCOL, looksUp: false }, /twice/],
    ['without ending what older writers run', { ...PROTOCOL, takeOverSteps: ['record epoch'] }, /twice/],
    ['without recording the epoch', { ...PROTOCOL, takeOverSteps: ['end older statements'] }, /twice/],
    ['without the fence in the insert', { ...PROTOCOL, fenced: false }, /twice/],
    [
      'without ending its own statement of which it did not hear',
      { ...PROTOCOL, endsOwn: false, closesSession: false },
      /twice/,
    ],
    ['with its session left open after an unclear answer', { ...PROTOCOL, closesSession: false }, /twice/],
    ['with events before the users that they show', order(eventsFirst), /before its user is seen/],
    ['with the commit before storing', order(() => 'commit'), /is lost/],
    ['with the commit before the events', order((step) => (step === 'store events' ? 'commit' : step)), /is lost/],
    [
      'without keeping dead letters',
      order((step) => (step === 'keep dead letters' ? 'commit' : step)),
      /not kept|lost/,
    ],
  ])('%s', (_, variant, expected) => {
    const { fault, trace } = explore(variant);
    expect(fault, trace.join('\n')).toMatch(expected);
  });
});

function eventsFirst(step: Step): Step {
  if (step === 'store seen in events') return 'store events';
  return step === 'store events' ? 'store seen in events' : step;
}
