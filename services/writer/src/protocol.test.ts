import { afterAll, describe, expect, test } from 'vitest';
import { exploreAll } from './testing/model/explore.ts';
import { runSchedule } from './testing/model/random.ts';
import { PROTOCOL, type Scenario, type Variant } from './testing/model/rules.ts';
import { LARGE_WORLD, SCENARIOS } from './testing/model/scenarios.ts';
import { changed, commitsBefore, moved } from './testing/model/variants.ts';

/** So many worlds of a scenario are visited; all but the endless ones have fewer. */
const STATES_MAX = 60_000;

const SCHEDULES = 3_000;

const report: { about: string; found: string; states: number; depth: number; complete: boolean }[] = [];

afterAll(() => {
  const sound = report.filter(({ found }) => found === NOTHING);
  const states = sound.reduce((sum, row) => sum + row.states, 0);
  console.table(report);
  console.log(`${states} worlds without a fault, up to ${Math.max(...sound.map(({ depth }) => depth))} actions deep`);
});

const NOTHING = 'nothing';

/**
 * Adds a line to the report: how many worlds were visited, and the length of the counterexample in actions, or how far
 * the search went without one. `complete` means that the scenario has no other worlds.
 */
function explore(about: string, scenario: Scenario, variant: Variant) {
  const found = exploreAll(scenario, variant, STATES_MAX);
  const { fault = NOTHING, trace, states, depth, exhausted } = found;
  report.push({ about, found: fault, states, depth: trace.length || depth, complete: exhausted });
  return found;
}

describe('nothing is lost, doubled, or seen too early when', () => {
  test.each(Object.values<Scenario>(SCENARIOS))('$name', (scenario) => {
    const { fault, trace, states, exhausted } = explore(scenario.name, scenario, PROTOCOL);
    expect(fault, trace.join('\n')).toBeUndefined();
    expect(states).toBeGreaterThan(1_000);
    expect(exhausted).toBe(!scenario.endless);
  });

  test(`${SCHEDULES} random schedules of crashes run in a larger world`, () => {
    let faults = 0;
    for (let seed = 1; seed <= SCHEDULES; seed += 1) {
      const outcome = runSchedule(LARGE_WORLD, seed, PROTOCOL);
      const trace: string[] = [];
      if (outcome.fault) runSchedule(LARGE_WORLD, seed, PROTOCOL, trace);
      expect(outcome.fault, `seed ${seed}\n${trace.join('\n')}`).toBeUndefined();
      faults += outcome.faults;
    }
    console.log(`the writers' protocol: ${SCHEDULES} random schedules with ${faults} faults`);
    expect(faults).toBeGreaterThan(10 * SCHEDULES);
  }, 120_000);
});

describe('the model notices when', () => {
  const { handOver, lostAnswer, deletedUser, stampedEvents, badRow, severalBrokers } = SCENARIOS;
  const { cutLog, cutLogOfTwo, cutLogOfOldVersion } = SCENARIOS;

  test.each<[string, Scenario, Variant, RegExp]>([
    ['the insert does not look up what is stored', lostAnswer, changed({ looksUp: false }), /twice/],
    // The take-over.
    [
      'older statements are ended before the epoch is recorded',
      handOver,
      changed({ takeOverSteps: ['end-older-statements', 'record-epoch'] }),
      /twice/,
    ],
    ['older statements are not ended', handOver, changed({ takeOverSteps: ['record-epoch'] }), /twice/],
    ['the epoch is not recorded', handOver, changed({ takeOverSteps: ['end-older-statements'] }), /twice/],
    ['the insert does not check the epoch', handOver, changed({ fenced: false }), /twice/],
    // An unclear answer.
    ['an unclear statement is not ended', lostAnswer, changed({ endsOwn: false, closesSession: false }), /twice/],
    ['the session stays open after it', lostAnswer, changed({ closesSession: false }), /twice/],
    // The order of a batch's steps.
    ['deletions are stored before they are loaded', deletedUser, moved('load-changes', 'store-deletions'), /is lost/],
    [
      'repeats are found before deletions are stored',
      stampedEvents,
      moved('store-deletions', 'find-repeats'),
      /is lost/,
    ],
    ['events are stored before deletions', deletedUser, moved('store-deletions', 'store-events'), /is lost|shows/],
    ['users are seen in repeats', stampedEvents, moved('find-repeats', 'store-seen-in-events'), /no event/],
    [
      'events are stored before repeats are found',
      stampedEvents,
      moved('find-repeats', 'store-events'),
      /twice|no event/,
    ],
    ['events are stored before their users', deletedUser, moved('store-seen-in-events', 'store-events'), /is seen/],
    ['the session is closed before events are stored', handOver, moved('store-events', 'close-session'), /never ends/],
    ['the commit comes first', handOver, commitsBefore('load-events'), /is lost/],
    ['the commit comes before the events', handOver, commitsBefore('store-events'), /is lost/],
    ['the commit comes before dead letters are kept', badRow, commitsBefore('store-dead-letters'), /is not kept/],
    // Stamped events.
    ['a deleted event counts as an original', stampedEvents, changed({ hidesOriginals: false }), /is lost/],
    // Fetches that arrive late.
    ['rows are stored in a later generation', severalBrokers, changed({ dropsStaleFetches: false }), /twice/],
    // Logs that are cut off.
    ['the last stored row is not compared', cutLog, changed({ checksFingerprint: false }), /is lost/],
    ['only the length is compared', cutLog, changed({ checksFingerprint: false, checksLeaderEpoch: false }), /is lost/],
    ['nothing is compared under a new leader', cutLog, changed({ checksLeaderEpoch: false }), /is lost/],
    ['the row before is not known after a crash', cutLog, changed({ readsRowBefore: false }), /is lost/],
    ['positions are recorded after the commit', cutLog, changed({ recordsFirst: false }), /is lost/],
    ['a restart forgets a halt', cutLogOfOldVersion, changed({ recordsHalt: false }), /before an operator|is lost/],
    ['one halt halts all partitions', cutLogOfTwo, changed({ haltsAlone: false }), /never ends/],
  ])('%s', (about, scenario, variant, expected) => {
    const { fault, trace } = explore(about, scenario, variant);
    expect(fault, trace.join('\n')).toMatch(expected);
  });
});

describe('for what is stored it does not matter whether', () => {
  const { deletedUser, stampedEvents, lostAnswer } = SCENARIOS;

  test.each<[string, Variant, readonly Scenario[]]>([
    ['events or changes are loaded first', moved('load-events', 'load-changes'), [deletedUser, stampedEvents]],
    // Readers compare a property with the deletion, and the erasure comes long after both.
    [
      'deletions or properties are stored first',
      moved('store-deletions', 'store-properties'),
      [deletedUser, stampedEvents],
    ],
    [
      'users are seen in changes before or after repeats are found',
      moved('store-seen-in-changes', 'find-repeats'),
      [deletedUser, stampedEvents],
    ],
    // A session is closed only when nothing runs in it: without the kill that takes as long as the statement does.
    ['an unclear statement is killed or waited for', changed({ endsOwn: false }), [lostAnswer]],
  ])('%s', (about, variant, scenarios) => {
    for (const scenario of scenarios) {
      const { fault, trace, exhausted } = explore(about, scenario, variant);
      expect(fault, trace.join('\n')).toBeUndefined();
      expect(exhausted).toBe(true);
    }
  });
});
