// npm run check:deploy: renders the Helm chart and checks its objects. See `npm run check:deploy -- --help`.
import { glob, mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { installNpmPackages } from '@sluice/local-stack/install-packages';
import { parseArguments, runCommand } from '@sluice/shared/config/command-line';
import { Helm, HelmError } from './deploy/helm.ts';
import { relationErrors } from './deploy/object-relations.ts';
import { ObjectSchemas, type ObjectSet } from './deploy/object-schemas.ts';
import { passedRuleErrors } from './deploy/passed-rules.ts';
import { type EnvVariables, passedErrors, passedValues } from './deploy/passed-values.ts';
import { PLANTED_OBJECT_FAULTS, PLANTED_PASSED_FAULTS } from './deploy/planted-faults.ts';
import { PLANTED_VALUE_FAULTS } from './deploy/planted-value-faults.ts';
import { checkPairs } from './deploy/switch-pairs.ts';

const HELP = `Usage: npm run check:deploy

Renders the Helm chart deploy/helm/sluice with each file of deploy/helm/values, and compares every object with the schemas
of Kubernetes, KEDA, the Prometheus operator and the Gateway API, with the other objects, and with the environment that
the services read. It gives every value that a container gets another one than its default, and compares what the
containers get with that. It renders each pair of switches, which have to do together what each does alone, or are refused. Then
it plants faults into objects and values, and says what finds each of them.

The first time it builds helm into .cache, which needs Go 1.26 or newer and some four minutes of CPU time, and installs
the schemas.

Exit codes: 0 the chart is right, and every planted fault was found; 1 otherwise; 2 wrong arguments.`;

const root = join(import.meta.dirname, '..');
const cache = join(root, '.cache');
const chart = join(root, 'deploy', 'helm', 'sluice');

process.exitCode = await runCommand('npm run check:deploy --', main);

async function main(): Promise<number> {
  const { values } = parseArguments({
    args: process.argv.slice(2),
    options: { help: { type: 'boolean', short: 'h' } },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  try {
    return await checkChart(await Helm.install(cache));
  } catch (error) {
    if (!(error instanceof HelmError)) throw error;
    console.error(error.message);
    return 1;
  }
}

async function checkChart(helm: Helm): Promise<number> {
  const folder = join(cache, 'deployment-checks');
  await installNpmPackages(join(import.meta.dirname, 'deploy', 'packages'), folder);
  const files = (await Array.fromAsync(glob('deploy/helm/values/*.yaml', { cwd: root }))).sort();
  const rendered: ObjectSet[] = [];
  for (const file of files) {
    await helm.lint(chart, join(root, file));
    rendered.push({ name: basename(file), objects: await helm.render(chart, ['--values', join(root, file)]) });
  }
  const planted = PLANTED_OBJECT_FAULTS.map((fault) => {
    const set = rendered.find(({ name }) => name === fault.file);
    if (!set) throw new Error(`deploy/helm/values/${fault.file} is missing`);
    return { fault, name: fault.name, objects: fault.plant(set.objects) };
  });
  const schemas = new ObjectSchemas(folder, join(root, 'node_modules', '.bin', 'tsc'));
  const errors = await schemas.check([...rendered, ...planted]);
  const errorsOf = ({ name, objects }: ObjectSet) => {
    const ofSchema = errors.get(name) ?? [];
    // Relations can be read only of objects that have the fields of their kind.
    return ofSchema.length > 0 ? ofSchema : relationErrors(objects);
  };
  const wrong = rendered.filter((set) => printSet(set, errorsOf(set)));
  const missed = planted.filter(({ fault, ...set }) => printFault(fault, errorsOf(set)));
  const accepted: string[] = [];
  for (const fault of PLANTED_VALUE_FAULTS) {
    const args = ['--values', join(root, 'deploy/helm/values/minimal.yaml'), ...fault.args];
    const refusal = await helm.render(chart, args).then(
      () => [],
      (error: unknown) => [(error as Error).message],
    );
    if (printFault(fault, refusal)) accepted.push(fault.name);
  }
  const { wrongSets, missedFaults } = await checkPassedValues(helm);
  const wrongPairs = await checkSwitches(helm);
  const faults = planted.length + PLANTED_VALUE_FAULTS.length + PLANTED_PASSED_FAULTS.length;
  console.log(`\n${rendered.length - wrong.length} of ${rendered.length} value sets are right`);
  console.log(`${faults - missed.length - accepted.length - missedFaults} of ${faults} planted faults were found`);
  return wrong.length + missed.length + accepted.length + wrongSets + missedFaults + wrongPairs === 0 ? 0 : 1;
}

/** Checks the pairs of switches. Returns how many are wrong. */
async function checkSwitches(helm: Helm): Promise<number> {
  const folder = join(cache, 'switches');
  await mkdir(folder, { recursive: true });
  const { pairs, refused, faults } = await checkPairs(helm, chart, folder);
  for (const { names, errors } of faults) {
    console.log(`FAILED ${names.join(' and ')}`);
    for (const error of errors) console.log(`  ${error}`);
  }
  console.log(`${pairs - faults.length} of ${pairs} pairs of switches are right, ${refused} of them refused`);
  return faults.length;
}

/** Checks that containers get every value, and that faults in what they get are found. */
async function checkPassedValues(helm: Helm): Promise<{ wrongSets: number; missedFaults: number }> {
  const folder = join(cache, 'passed-values');
  await mkdir(folder, { recursive: true });
  const schema = JSON.parse(await readFile(join(chart, 'values.schema.json'), 'utf8'));
  const variablesOf = (section: string) => Object.keys(schema.properties[section].properties.env.properties);
  const variables: EnvVariables = {
    ingestApi: variablesOf('ingestApi'),
    writer: variablesOf('writer'),
    queryApi: variablesOf('queryApi'),
    trenchApi: variablesOf('trenchApi'),
  };
  const rules = await readFile(join(root, 'deploy', 'prometheus', 'sluice.rules.yml'), 'utf8');
  let wrongSets = 0;
  let missedFaults = 0;
  for (const { name, values, passed } of passedValues(variables)) {
    const file = join(folder, `${name}.yaml`);
    await writeFile(file, JSON.stringify(values));
    const objects = await helm.render(chart, ['--values', file]);
    const errorsOf = (given: typeof objects) => [...passedErrors(given, passed), ...passedRuleErrors(given, rules)];
    if (printSet({ name: `values of ${name}`, objects }, errorsOf(objects))) wrongSets += 1;
    for (const fault of PLANTED_PASSED_FAULTS.filter((planted) => planted.file === name)) {
      if (printFault(fault, errorsOf(fault.plant(objects)))) missedFaults += 1;
    }
  }
  return { wrongSets, missedFaults };
}

/** Prints the objects of a set by kind, and its errors. Returns whether there are any. */
function printSet({ name, objects }: ObjectSet, errors: readonly string[]): boolean {
  const kinds = Map.groupBy(objects, ({ kind }) => kind);
  const counts = [...kinds]
    .map(([kind, { length }]) => `${length} ${kind}`)
    .sort((a, b) => (a.slice(2) < b.slice(2) ? -1 : 1));
  console.log(`${errors.length === 0 ? 'ok' : 'FAILED'} ${name}: ${objects.length} objects: ${counts.join(', ')}`);
  for (const error of errors) console.log(`  ${error}`);
  return errors.length > 0;
}

interface Expected {
  readonly name: string;
  /** Stands in one of the errors. */
  readonly found: string;
}

/** Prints what found a planted fault. Returns whether nothing did. */
function printFault({ name, found }: Expected, errors: readonly string[]): boolean {
  const error = errors.find((message) => message.includes(found));
  const line = error?.split('\n').find((part) => part.includes(found));
  console.log(line === undefined ? `NOT FOUND ${name}` : `found: ${name}\n  ${line.trim()}`);
  if (line === undefined) for (const other of errors) console.log(`  ${other}`);
  return line === undefined;
}
