import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { type KubernetesObject, titleOf } from './kubernetes-object.ts';

/** Where the kinds of an API group are, unless they are Kubernetes' own. */
const PACKAGES: Readonly<Record<string, string>> = {
  'gateway.networking.k8s.io': '@kubernetes-models/gateway-api',
  'keda.sh': '@kubernetes-models/keda',
  'monitoring.coreos.com': '@kubernetes-models/prometheus-operator',
};

/** What kubernetes-models has for a kind. */
interface Model {
  new (object: object): { validate(): void };
}

/** A set of objects that are installed together, such as those of one values file. */
export interface ObjectSet {
  readonly name: string;
  readonly objects: readonly KubernetesObject[];
}

/**
 * Compares objects with the schemas of Kubernetes, KEDA, the Prometheus operator and the Gateway API, in two ways: each
 * object is validated, which finds wrong types, values and missing fields; and the TypeScript compiler compares all with
 * the types of the same package, which also finds fields that do not exist.
 */
export class ObjectSchemas {
  readonly #folder: string;
  readonly #compiler: string;

  /**
   * @param folder has the packages of packages/package.json installed
   * @param compiler the program tsc
   */
  constructor(folder: string, compiler: string) {
    this.#folder = folder;
    this.#compiler = compiler;
  }

  /** Returns the errors of each set, by its name. Sets without errors have an empty list. */
  async check(sets: readonly ObjectSet[]): Promise<ReadonlyMap<string, readonly string[]>> {
    const load = await this.#importer();
    const validated = await Promise.all(sets.map((set) => validate(set, load)));
    const known = validated.map(({ known }) => known);
    const compiled = await this.#compile(known);
    return new Map(
      validated.map(({ known: { name }, errors }) => {
        return [name, [...errors, ...(compiled.get(name) ?? [])]];
      }),
    );
  }

  /** Returns a function that imports a module of the packages in the folder. */
  async #importer(): Promise<(name: string) => Promise<Record<string, Model>>> {
    // A file finds the packages beside it.
    const file = join(this.#folder, 'importer.mjs');
    await writeFile(file, 'export const load = (name) => import(name);\n');
    return (await import(pathToFileURL(file).href)).load;
  }

  async #compile(sets: readonly ObjectSet[]): Promise<Map<string, string[]>> {
    const folder = join(this.#folder, 'objects');
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    const files = sets.map(({ objects }) => new ObjectFile(objects));
    await Promise.all(files.map((file, index) => writeFile(join(folder, `set-${index}.ts`), file.text)));
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: COMPILER_OPTIONS }));
    const errors = new Map<string, string[]>();
    for (const [, file = '', line = '', message = ''] of await this.#runCompiler(folder)) {
      const name = sets[Number(file)]?.name ?? '';
      errors.set(name, [...(errors.get(name) ?? []), `${files[Number(file)]?.titleAt(Number(line))}: ${message}`]);
    }
    return errors;
  }

  async #runCompiler(folder: string): Promise<RegExpMatchArray[]> {
    const child = spawn(this.#compiler, ['--project', folder, '--pretty', 'false'], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
    const errors = [...output.matchAll(/^set-(\d+)\.ts\((\d+),\d+\): error TS\d+: (.*)$/gm)];
    if (code !== 0 && errors.length === 0) throw new Error(`the TypeScript compiler fails:\n${output}`);
    return errors;
  }
}

async function validate(
  { name, objects }: ObjectSet,
  load: (name: string) => Promise<Record<string, Model>>,
): Promise<{ known: ObjectSet; errors: readonly string[] }> {
  const errors: string[] = [];
  const known: KubernetesObject[] = [];
  for (const object of objects) {
    // The package may not have such a group or version.
    const models = await load(moduleOf(object)).catch((): Record<string, Model> => ({}));
    const Model = models[object.kind];
    if (!Model) {
      errors.push(`${titleOf(object)}: there is no ${object.kind} in ${object.apiVersion}`);
      continue;
    }
    known.push(object);
    try {
      new Model(object).validate();
    } catch (error) {
      errors.push(`${titleOf(object)}: ${(error as Error).message}`);
    }
  }
  return { known: { name, objects: known }, errors };
}

const COMPILER_OPTIONS = {
  ...{ module: 'esnext', moduleResolution: 'bundler', target: 'esnext', lib: ['esnext'], types: [] },
  ...{ strict: true, skipLibCheck: true, noEmit: true },
};

function moduleOf({ apiVersion }: KubernetesObject): string {
  const [group = ''] = apiVersion.split('/');
  return `${PACKAGES[group] ?? 'kubernetes-models'}/${apiVersion}`;
}

/** A TypeScript file that declares each object with the type of its kind. */
class ObjectFile {
  readonly text: string;
  readonly #titles: { readonly title: string; readonly endLine: number }[] = [];

  constructor(objects: readonly KubernetesObject[]) {
    let text = '';
    let endLine = 0;
    for (const [index, object] of objects.entries()) {
      const type = `import('${moduleOf(object)}').I${object.kind}`;
      const declaration = `export const object${index}: ${type} = ${JSON.stringify(object, undefined, 2)};\n`;
      text += declaration;
      endLine += declaration.split('\n').length - 1;
      this.#titles.push({ title: titleOf(object), endLine });
    }
    this.text = text;
  }

  /** Which object stands at a line, from 1. */
  titleAt(line: number): string | undefined {
    return this.#titles.find(({ endLine }) => line <= endLine)?.title;
  }
}
