import { expect, test } from 'vitest';
import { groupsOf, planFaults } from './schedule.ts';

test('the same seed plans the same faults, another seed others, and more minutes more', () => {
  const plan = planFaults(1, 5);
  expect(planFaults(1, 5)).toEqual(plan);
  expect(planFaults(2, 5)).not.toEqual(plan);
  const longer = planFaults(1, 10);
  expect(longer.slice(0, plan.length)).toEqual(plan);
  expect(longer.length).toBeGreaterThan(plan.length);
  expect(new Set(plan.map(({ target }) => target)).size).toBeGreaterThan(8);
});

test('of the servers of a range one is disturbed at a time, and those of each are wiped as well', () => {
  const plan = planFaults(1, 30, { shards: 2, mirrors: 2 });
  const ofServers = plan.filter(({ target }) => target.startsWith('server '));
  expect(new Set(ofServers.map(({ kind, target }) => `${kind} ${target}`)).size).toBe(16);
  for (const range of ['servers a', 'servers b']) {
    let endedMs = 0;
    for (const fault of ofServers.filter((fault) => groupsOf(fault).includes(range))) {
      expect(fault.atMs).toBeGreaterThan(endedMs);
      endedMs = fault.atMs + fault.lastsMs;
    }
  }
});
