import { afterAll, describe, expect, test } from 'vitest';
import { exploreAll } from '../testing/model/explore.ts';
import { runSchedule } from '../testing/model/random-schedule.ts';
import type { Scenario } from '../testing/model/scenario.ts';
import { LARGE_WORLD, SCENARIOS } from '../testing/model/scenarios.ts';
import { changed, commitsBefore, moved, PROTOCOL, type Variant } from '../testing/model/variant.ts';

/** How many worlds of a scenario are visited; only the endless ones have more. */
const STATES_MAX = 60_000;

const SCHEDULES = 3_000;

const report: { about: string; found: string; states: number; depth: number; complete: boolean }[] = [];

afterAll(() => {
  const sound = report.filter(({ found }) => found === NOTHING);
  const states = sound.reduce((sum, row) => sum + row.states, 0);
  console.table(report);
  console.log(
    `${states} worlds without a violation, up to ${Math.max(...sound.map(({ depth }) => depth))} actions deep`,
  );
});

const NOTHING = 'nothing';

/**
 * Explores a scenario and adds a line to the report: how many worlds were visited, and the length of the counterexample
 * in actions, or the depth of the search without one. `complete` means that the scenario has no other worlds.
 */
function explore(about: string, scenario: Scenario, variant: Variant) {
  const found = exploreAll(scenario, variant, STATES_MAX);
  const { violation = NOTHING, trace, states, depth, exhausted } = found;
  report.push({ about, found: violation, states, depth: trace.length || depth, complete: exhausted });
  return found;
}

describe('nothing is lost, stored twice, or visible too early when', () => {
  test.each(Object.values<Scenario>(SCENARIOS))('$name', (scenario) => {
    const { violation, trace, states, exhausted } = explore(scenario.name, scenario, PROTOCOL);
    expect(violation, trace.join('\n')).toBeUndefined();
    expect(states).toBeGreaterThan(1_000);
    expect(exhausted).toBe(!scenario.endless);
  });

  test(`a larger world runs ${SCHEDULES} random schedules with faults`, () => {
    let faults = 0;
    for (let seed = 1; seed <= SCHEDULES; seed += 1) {
      const outcome = runSchedule(LARGE_WORLD, seed, PROTOCOL);
      const trace: string[] = [];
      if (outcome.violation) runSchedule(LARGE_WORLD, seed, PROTOCOL, trace);
      expect(outcome.violation, `seed ${seed}\n${trace.join('\n')}`).toBeUndefined();
      faults += outcome.faults;
    }
    console.log(`${SCHEDULES} random schedules with ${faults} faults`);
    expect(faults).toBeGreaterThan(10 * SCHEDULES);
  }, 120_000);
});

describe('the model notices when', () => {
  const { handOver, lostResponse, deletedUser, stampedEvents, anotherUser, badRow, severalBrokers } = SCENARIOS;
  const { cutLog, cutLogOfTwo, cutLogOfOldVersion } = SCENARIOS;

  test.each<[string, Scenario, Variant, RegExp]>([
    ['stored events are not looked up', lostResponse, changed({ looksUp: false }), /twice/],
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
    // An unclear failure.
    ['an unclear statement is not ended', lostResponse, changed({ endsOwn: false, closesSession: false }), /twice/],
    ['the session stays open after it', lostResponse, changed({ closesSession: false }), /twice/],
    // The order of a batch's steps.
    ['deletions are stored before they are loaded', deletedUser, moved('load-changes', 'store-deletions'), /is lost/],
    [
      'repeats are found before deletions are stored',
      stampedEvents,
      moved('store-deletions', 'find-repeats'),
      /is lost/,
    ],
    ['events are stored before deletions', deletedUser, moved('store-deletions', 'store-events'), /is lost|shows/],
    ['users are seen in repeated events', stampedEvents, moved('find-repeats', 'store-seen-in-events'), /no event/],
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
    ['the commit comes before dead deadLetters are kept', badRow, commitsBefore('store-dead-letters'), /is not kept/],
    // Stamped events.
    ['a deleted event counts as an original', stampedEvents, changed({ hidesOriginals: false }), /is lost/],
    [
      'only the deletions of the batch are asked whether an original is hidden',
      anotherUser,
      changed({ asksStoredUsers: false }),
      /is lost/,
    ],
    ['the user of a repeat is seen', anotherUser, moved('find-repeats', 'store-seen-in-events'), /no event/],
    // Fetches that arrive late.
    [
      'rows are stored in a later generation than they were fetched in',
      severalBrokers,
      changed({ dropsStaleFetches: false }),
      /twice/,
    ],
    // Logs that are cut off.
    ['the last stored row is not compared with the log', cutLog, changed({ checksFingerprint: false }), /is lost/],
    [
      'only the length of the log is compared',
      cutLog,
      changed({ checksFingerprint: false, checksLeaderEpoch: false }),
      /is lost/,
    ],
    ['the log is not compared under a new leader', cutLog, changed({ checksLeaderEpoch: false }), /is lost/],
    ['the row before the position is not read after a crash', cutLog, changed({ readsRowBefore: false }), /is lost/],
    ['positions are stored after the commit', cutLog, changed({ storesPositionFirst: false }), /is lost/],
    ['a restart forgets a halt', cutLogOfOldVersion, changed({ recordsHalt: false }), /before an operator|is lost/],
    ['one halt halts all partitions', cutLogOfTwo, changed({ haltsAlone: false }), /never ends/],
  ])('%s', (about, scenario, variant, expected) => {
    const { violation, trace } = explore(about, scenario, variant);
    expect(violation, trace.join('\n')).toMatch(expected);
  });
});

describe('the result is the same whether', () => {
  const { deletedUser, stampedEvents, lostResponse } = SCENARIOS;

  test.each<[string, Variant, readonly Scenario[]]>([
    ['events or changes are loaded first', moved('load-events', 'load-changes'), [deletedUser, stampedEvents]],
    // Queries compare a property with the deletion, and the erasure comes long after both.
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
    // A session closes only when nothing runs in it, so without the kill the writer waits for the statement to end.
    ['an unclear statement is killed or waited for', changed({ endsOwn: false }), [lostResponse]],
  ])('%s', (about, variant, scenarios) => {
    for (const scenario of scenarios) {
      const { violation, trace, exhausted } = explore(about, scenario, variant);
      expect(violation, trace.join('\n')).toBeUndefined();
      expect(exhausted).toBe(true);
    }
  });
});
