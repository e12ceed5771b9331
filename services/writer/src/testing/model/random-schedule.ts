import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { stepActions, take } from './explore.ts';
import { faultActions } from './faults.ts';
import { isFinished } from './invariants.ts';
import { rebalance } from './kafka-group.ts';
import { createRules } from './rules.ts';
import type { Scenario } from './scenario.ts';
import type { Variant } from './variant.ts';
import { type Action, createWorld } from './world.ts';

/** How many actions a schedule takes before faults stop. */
const CHOICES = 250;

/** The result of a schedule. */
export interface Outcome {
  /** What was wrong after an action, if anything. */
  readonly violation: string | undefined;
  /** How many faults were injected: processes killed or held up, responses lost, partitions moved. */
  readonly faults: number;
}

/**
 * Runs the protocol under a random schedule: takes one of the possible actions again and again, faults among them. Then
 * the faults stop, and everything must be stored in the end.
 *
 * @param seed the same seed produces the same schedule
 * @param trace gets one line per action
 */
export function runSchedule(scenario: Scenario, seed: number, variant: Variant, trace?: string[]): Outcome {
  const random = xoroshiro128plus(seed);
  const below = (count: number) => uniformInt(random, 0, count - 1);
  const choicesPerFault = 8 << below(4);
  const rules = createRules(scenario, variant);
  const world = createWorld(rules, true);
  /** Processes and statements that are held up: they take no actions. */
  const held = new Set<string>();
  let faults = 0;

  function takeOne(actions: readonly Action[]): string | undefined {
    const action = actions[below(Math.max(1, actions.length))];
    if (!action) return undefined;
    trace?.push(action.name);
    return take(world, rules, action);
  }

  const steps = () => stepActions(world, rules).filter(({ actor }) => actor === undefined || !held.has(actor));

  /** Inserts are held up more often than the rest, because the protocol depends on what they overlap with. */
  function holdUps(): Action[] {
    const processes = world.writers.map(({ process }) => ({ actor: `writer ${process}`, weight: 1 }));
    const statements = world.statements.map(({ id, step }) => ({ actor: id, weight: step === 'store-events' ? 8 : 1 }));
    const holds = [...processes, ...statements].flatMap(({ actor, weight }) =>
      Array<Action>(weight).fill({ name: `${actor} is held up`, act: () => held.add(actor) }),
    );
    const releases = [...held].flatMap((actor) =>
      Array<Action>(8).fill({ name: `${actor} is no longer held up`, act: () => held.delete(actor) }),
    );
    return [...holds, ...releases];
  }

  for (let choice = 0; choice < CHOICES; choice += 1) {
    const isFault = below(choicesPerFault) === 0;
    if (isFault) faults += 1;
    const violation = takeOne(isFault ? [...faultActions(world, rules), ...holdUps()] : steps());
    if (violation) return { violation, faults };
  }
  trace?.push('there are no more faults from here on');
  held.clear();
  rebalance(world, scenario.assignments[0] ?? []);
  for (let turn = 0; !isFinished(world, rules); turn += 1) {
    if (turn > 5_000) return { violation: 'it never ends', faults };
    const violation = takeOne(steps());
    if (violation) return { violation, faults };
  }
  return { violation: undefined, faults };
}
