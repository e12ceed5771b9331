import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { stepActions, take } from './explore.ts';
import { isFinished } from './faults.ts';
import { hazardActions } from './hazards.ts';
import { createRules, type Scenario, type Variant } from './rules.ts';
import { type Action, createWorld } from './world.ts';
import { rebalance } from './writer.ts';

/** How many choices a schedule makes before all is well. */
const CHOICES = 250;

/** What came of a schedule. */
export interface Outcome {
  /** What was found wrong. */
  readonly fault: string | undefined;
  /** How many processes were killed or held up, answers lost and partitions moved. */
  readonly faults: number;
}

/**
 * Runs the protocol under a schedule that is drawn by chance: one of what could happen next, again and again. After
 * that nothing fails any more, and everything has to be stored in the end.
 *
 * @param seed the same seed gives the same schedule
 * @param trace gets a line for each thing that happens
 */
export function runSchedule(scenario: Scenario, seed: number, variant: Variant, trace?: string[]): Outcome {
  const random = xoroshiro128plus(seed);
  const below = (count: number) => uniformInt(random, 0, count - 1);
  const choicesPerFault = 8 << below(4);
  const rules = createRules(scenario, variant);
  const world = createWorld(rules, true);
  /** Processes and statements that are held up: nothing happens to them for a while. */
  const held = new Set<string>();
  let faults = 0;

  function takeOne(actions: readonly Action[]): string | undefined {
    const action = actions[below(Math.max(1, actions.length))];
    if (!action) return undefined;
    trace?.push(action.name);
    return take(world, rules, action);
  }

  const steps = () => stepActions(world, rules).filter(({ actor }) => actor === undefined || !held.has(actor));

  /** Inserts are held up more often than the rest, and for no longer: what they overlap with is what matters. */
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
    const wrong = below(choicesPerFault) === 0;
    if (wrong) faults += 1;
    const fault = takeOne(wrong ? [...hazardActions(world, rules), ...holdUps()] : steps());
    if (fault) return { fault, faults };
  }
  trace?.push('all is well from here on');
  held.clear();
  rebalance(world, scenario.assignments[0] ?? []);
  for (let turn = 0; !isFinished(world, rules); turn += 1) {
    if (turn > 5_000) return { fault: 'it never ends', faults };
    const fault = takeOne(steps());
    if (fault) return { fault, faults };
  }
  return { fault: undefined, faults };
}
