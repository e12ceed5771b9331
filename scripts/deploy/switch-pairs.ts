import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Helm } from './helm.ts';
import { HelmError } from './helm.ts';
import { type KubernetesObject, objectsOf, podsOf } from './kubernetes-object.ts';
import { relationErrors } from './object-relations.ts';
import { BASE, CONTRADICTIONS, REPLACEMENTS, SWITCHES } from './switches.ts';

/** What is wrong with two switches together. */
export interface PairFault {
  readonly names: readonly [string, string];
  readonly errors: readonly string[];
}

export interface PairsChecked {
  readonly pairs: number;
  readonly refused: number;
  readonly faults: readonly PairFault[];
}

/**
 * Renders the chart with each switch, and with each pair of them. Together they have to be right, and have to do what each does
 * alone; or the chart refuses them, where {@link CONTRADICTIONS} says so, and nowhere else.
 *
 * @param folder for files of values
 */
export async function checkPairs(helm: Helm, chart: string, folder: string): Promise<PairsChecked> {
  const files = await Promise.all(
    [BASE, ...SWITCHES.map(({ values }) => values)].map(async (values, index) => {
      const file = join(folder, `switch-${index}.yaml`);
      await writeFile(file, JSON.stringify(values));
      return file;
    }),
  );
  const [base = '', ...ofSwitches] = files;
  const render = async (...added: readonly string[]) =>
    await helm
      .render(
        chart,
        [base, ...added].flatMap((file) => ['--values', file]),
      )
      .catch((error: unknown) => {
        if (!(error instanceof HelmError)) throw error;
        return error;
      });
  const without = effectsOf(await rendered(render()));
  const alone = await inTurns(ofSwitches, async (file) => changeOf(without, effectsOf(await rendered(render(file)))));
  const pairs = SWITCHES.flatMap((_, first) =>
    SWITCHES.slice(first + 1).map((_, more) => [first, first + 1 + more] as const),
  );
  let refused = 0;
  const faults = await inTurns(pairs, async ([first, second]): Promise<PairFault> => {
    const names = [SWITCHES[first]?.name ?? '', SWITCHES[second]?.name ?? ''] as const;
    const outcome = await render(ofSwitches[first] ?? '', ofSwitches[second] ?? '');
    if (outcome instanceof HelmError) refused += 1;
    const changes = [alone[first], alone[second]].filter((change) => change !== undefined);
    return { names, errors: pairErrors(names, outcome, changes) };
  });
  return { pairs: pairs.length, refused, faults: faults.filter(({ errors }) => errors.length > 0) };
}

/** What a switch alone changes. */
interface Change {
  readonly added: readonly string[];
  /** What it takes from a service, it takes from Jobs as well: these have no component. */
  readonly taken: readonly string[];
}

function changeOf(without: readonly string[], effects: readonly string[]): Change {
  return {
    added: effects.filter((effect) => !without.includes(effect)),
    taken: without.filter((effect) => !effects.includes(effect)).map(withoutComponent),
  };
}

/** `writer has CLICKHOUSE_URL` without the writer. */
function withoutComponent(effect: string): string {
  return effect.replace(/^\S+ /, '');
}

function pairErrors(
  names: readonly [string, string],
  outcome: readonly KubernetesObject[] | HelmError,
  changes: readonly Change[],
): readonly string[] {
  const found = CONTRADICTIONS.find(({ switches }) => names.every((name) => switches.includes(name)))?.found;
  if (outcome instanceof HelmError) {
    return found !== undefined && outcome.message.includes(found) ? [] : [outcome.message];
  }
  if (found !== undefined) return [`it is not refused: ${found}`];
  const effects = new Set(effectsOf(outcome));
  const replaced = REPLACEMENTS.filter(({ name }) => names.includes(name));
  const taken = changes.flatMap((change) => change.taken);
  const lost = changes
    .flatMap(({ added }) => added)
    .filter((effect) => !effects.has(effect) && !taken.includes(withoutComponent(effect)))
    .filter((effect) => !replaced.some((replacement) => replacement.effects.test(effect)));
  return [...relationErrors(outcome), ...lost.map((effect) => `this is lost: ${effect}`)];
}

/**
 * Returns what values do, in a form that does not depend on the names of objects: which kinds of objects there are for which
 * component, and for pods which variables and files they have, where they may connect to, and whether none runs.
 */
export function effectsOf(objects: readonly KubernetesObject[]): readonly string[] {
  const component = ({ 'app.kubernetes.io/component': name = '' }: Readonly<Record<string, string>>) => name;
  const effects = [
    ...objects.map(({ kind, metadata }) => `${kind} ${component(metadata.labels)}`),
    ...podsOf(objects).flatMap(({ labels, spec: { containers, volumes } }) => [
      ...containers.flatMap(({ env, image }) => [
        ...env.map(({ name }) => `${component(labels)} has ${name}`),
        `${component(labels)} is of ${image}`,
      ]),
      ...volumes.flatMap(({ projected }) =>
        projected.sources.flatMap(({ secret, configMap }) =>
          [...(secret?.items ?? []), ...(configMap?.items ?? [])].map(
            ({ path }) => `${component(labels)} mounts ${path}`,
          ),
        ),
      ),
    ]),
    ...objectsOf(objects, 'NetworkPolicy').flatMap(({ labels, spec }) =>
      spec.egress.flatMap(({ ports }) => ports.map(({ port }) => `${component(labels)} may connect to ${port}`)),
    ),
    ...objectsOf(objects, 'Deployment')
      .filter(({ spec }) => spec.replicas === 0)
      .map(({ labels }) => `${component(labels)} does not run`),
    ...objects
      .filter(({ metadata }) => 'autoscaling.keda.sh/paused-replicas' in (metadata.annotations ?? {}))
      .map(({ metadata }) => `${component(metadata.labels)} does not run`),
  ];
  return [...new Set(effects)];
}

async function rendered(
  objects: Promise<readonly KubernetesObject[] | HelmError>,
): Promise<readonly KubernetesObject[]> {
  const outcome = await objects;
  if (outcome instanceof HelmError) throw outcome;
  return outcome;
}

/** How many programs run at once. */
const AT_ONCE = 2;

async function inTurns<Item, Result>(
  items: readonly Item[],
  run: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  const waiting = items.entries();
  const worker = async () => {
    for (const [index, item] of waiting) results[index] = await run(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}
