import { hash } from 'node:crypto';
import { erasureActions, mergeActions, statementActions } from './clickhouse.ts';
import { faultActions, surroundingActions } from './faults.ts';
import { findLoss, findViolation, isFinished } from './invariants.ts';
import { createRules, type Rules } from './rules.ts';
import type { Scenario } from './scenario.ts';
import type { Variant } from './variant.ts';
import { type Action, copyOf, createWorld, type World } from './world.ts';
import { keyOf, tidy } from './world-key.ts';
import { writerActions } from './writer.ts';

export interface Exploration {
  /** What is wrong in the worst world, if anything. */
  readonly violation: string | undefined;
  /** The actions that lead to it, as few as possible. */
  readonly trace: readonly string[];
  /** How many different worlds were visited. */
  readonly states: number;
  /** How many actions it takes to reach the farthest of them. */
  readonly depth: number;
  /** Whether the scenario has no other worlds. */
  readonly exhausted: boolean;
}

/** Returns the actions that are possible now and are no faults. */
export function stepActions(world: World, rules: Rules): Action[] {
  return [
    ...writerActions(world, rules),
    ...statementActions(world, rules),
    ...erasureActions(world, rules),
    ...mergeActions(world, rules),
    ...surroundingActions(world, rules),
  ];
}

/** Takes one action, and returns what is wrong afterwards, if anything. */
export function take(world: World, rules: Rules, action: Action): string | undefined {
  action.act(world);
  tidy(world);
  return findViolation(world, rules) ?? (isFinished(world, rules) ? findLoss(world, rules) : undefined);
}

/**
 * Visits every world that the actions lead to, in every order and breadth first, until one is wrong or `statesMax` worlds
 * were visited. When all worlds were visited, it also checks that each of them can reach an end without further faults.
 */
export function exploreAll(scenario: Scenario, variant: Variant, statesMax: number): Exploration {
  const rules = createRules(scenario, variant);
  const first = createWorld(rules);
  const known = new Map([[digest(keyOf(first)), 0]]);
  const origins: { from: number; choice: number }[] = [{ from: -1, choice: -1 }];
  const leadsTo: number[][] = [[]];
  const ends: number[] = [];
  let level = [{ id: 0, world: first }];
  let depth = 0;

  function result(violation: string | undefined, from: number, choice: number): Exploration {
    const choices = choice < 0 ? [] : [choice];
    for (let id = from; id > 0; id = origins[id]?.from ?? 0) choices.unshift(origins[id]?.choice ?? 0);
    const exhausted = level.length === 0;
    return { violation, trace: violation ? traceOf(rules, choices) : [], states: known.size, depth, exhausted };
  }

  while (level.length > 0 && known.size < statesMax) {
    const nextLevel: typeof level = [];
    for (const { id, world } of level) {
      if (isFinished(world, rules)) ends.push(id);
      const steps = stepActions(world, rules);
      const actions = [...steps, ...faultActions(world, rules)];
      for (const [choice, action] of actions.entries()) {
        const after = copyOf(world);
        const violation = take(after, rules, action);
        if (violation) {
          depth += 1;
          return result(violation, id, choice);
        }
        const name = digest(keyOf(after));
        let target = known.get(name);
        if (target === undefined) {
          target = known.size;
          known.set(name, target);
          origins.push({ from: id, choice });
          leadsTo.push([]);
          nextLevel.push({ id: target, world: after });
        }
        if (choice < steps.length) leadsTo[target]?.push(id);
      }
    }
    level = nextLevel;
    if (level.length > 0) depth += 1;
  }
  if (level.length > 0) return result(undefined, 0, -1);
  const endless = findEndless(leadsTo, ends);
  return endless === undefined ? result(undefined, 0, -1) : result('it never ends', endless, -1);
}

/** Returns the first world that can reach no end. @param from for each world, the worlds that lead to it */
function findEndless(from: readonly (readonly number[])[], ends: readonly number[]): number | undefined {
  const reaches = new Set(ends);
  const open = [...ends];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    for (const before of from[id] ?? []) {
      if (reaches.has(before)) continue;
      reaches.add(before);
      open.push(before);
    }
  }
  const endless = from.findIndex((_, id) => !reaches.has(id));
  return endless < 0 ? undefined : endless;
}

function digest(key: string): string {
  return hash('md5', key, 'base64');
}

function traceOf(rules: Rules, choices: readonly number[]): string[] {
  const world = createWorld(rules);
  return choices.map((choice) => {
    const action = [...stepActions(world, rules), ...faultActions(world, rules)][choice] as Action;
    take(world, rules, action);
    // It sorts the world, as exploreAll has done, so that the choices have the same meaning.
    keyOf(world);
    return action.name;
  });
}
