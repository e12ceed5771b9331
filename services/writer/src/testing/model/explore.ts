import { hash } from 'node:crypto';
import { erasureActions, statementActions } from './clickhouse.ts';
import { findFault, findLoss, isFinished } from './faults.ts';
import { hazardActions, surroundingActions } from './hazards.ts';
import { createRules, type Rules, type Scenario, type Variant } from './rules.ts';
import { type Action, copyOf, createWorld, keyOf, tidy, type World } from './world.ts';
import { writerActions } from './writer.ts';

export interface Exploration {
  /** What was found wrong, if anything. */
  readonly fault: string | undefined;
  /** How it comes about, in as few actions as possible. */
  readonly trace: readonly string[];
  /** How many different worlds were seen. */
  readonly states: number;
  /** How many actions lead to the farthest of them. */
  readonly depth: number;
  /** Whether these are all that there are. */
  readonly exhausted: boolean;
}

/** What happens when nothing goes wrong. */
export function stepActions(world: World, rules: Rules): Action[] {
  return [
    ...writerActions(world, rules),
    ...statementActions(world, rules),
    ...erasureActions(world, rules),
    ...surroundingActions(world, rules),
  ];
}

/** Does one action. @returns what is wrong afterwards */
export function take(world: World, rules: Rules, action: Action): string | undefined {
  action.act(world);
  tidy(world);
  return findFault(world, rules) ?? (isFinished(world, rules) ? findLoss(world, rules) : undefined);
}

/**
 * Follows every order in which things can happen, the shortest first, until something is wrong or `statesMax` worlds
 * were seen. When all were seen, each must lead to an end if nothing goes wrong any more.
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

  function result(fault: string | undefined, from: number, choice: number): Exploration {
    const choices = choice < 0 ? [] : [choice];
    for (let id = from; id > 0; id = origins[id]?.from ?? 0) choices.unshift(origins[id]?.choice ?? 0);
    const exhausted = level.length === 0;
    return { fault, trace: fault ? traceOf(rules, choices) : [], states: known.size, depth, exhausted };
  }

  while (level.length > 0 && known.size < statesMax) {
    const nextLevel: typeof level = [];
    for (const { id, world } of level) {
      if (isFinished(world, rules)) ends.push(id);
      const steps = stepActions(world, rules);
      const actions = [...steps, ...hazardActions(world, rules)];
      for (const [choice, action] of actions.entries()) {
        const after = copyOf(world);
        const fault = take(after, rules, action);
        if (fault) {
          depth += 1;
          return result(fault, id, choice);
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

/** The first world from which no end can be reached. @param from for each world those that lead to it */
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
    const action = [...stepActions(world, rules), ...hazardActions(world, rules)][choice] as Action;
    take(world, rules, action);
    // Sorts, so that the choices mean the same.
    keyOf(world);
    return action.name;
  });
}
