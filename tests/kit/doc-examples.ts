import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { inherited } from '@sluice/shared/testing/inherited';
import { programFile } from '@sluice/shared/testing/program-file';
import { inject } from 'vitest';
import { type Pipeline, type PipelineOptions, startPipeline } from './pipeline.ts';
import { takeTenant } from './shared-pipeline.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A command of a document, and the output that the document shows. */
export interface DocExample {
  readonly command: string;
  readonly output: string;
}

/** The blocks of shell commands that are followed by a block with their output, in JSON or as text. */
export function docExamples(text: string): DocExample[] {
  return [...text.matchAll(/^```sh\n(.*?)\n```\n\n```(?:json|text)\n(.*?)\n```$/gms)].map(
    ([, command = '', output = '']): DocExample => ({ command, output }),
  );
}

/** Runs the commands of documents as a person does in the folder of the project, but against a pipeline. */
export class DocShell {
  readonly #pipeline: Pick<Pipeline, 'services'>;
  readonly #folder: string;

  readonly #others: Readonly<Record<string, string>>;

  private constructor(pipeline: Pick<Pipeline, 'services'>, folder: string, others: Readonly<Record<string, string>>) {
    this.#others = others;
    this.#pipeline = pipeline;
    this.#folder = folder;
  }

  /**
   * Prepares `folder` so that the commands find in it what they name.
   *
   * @param key the development key
   * @param others addresses of other services, by those that documents have
   */
  static async create(
    pipeline: Pick<Pipeline, 'services'>,
    folder: string,
    key: string,
    others: Readonly<Record<string, string>> = {},
  ): Promise<DocShell> {
    await mkdir(join(folder, '.sluice'));
    await writeFile(join(folder, '.sluice', 'dev-key'), key);
    await symlink(join(root, 'examples'), join(folder, 'examples'));
    return new DocShell(pipeline, folder, others);
  }

  /** What the commands print, whatever their exit code. */
  async run(commands: string): Promise<string> {
    const { services } = this.#pipeline;
    const ingestUrl = services['ingest-api'].url;
    const importer = `"${process.execPath}" "${programFile('sluice')}" import --url ${ingestUrl}`;
    const ofOthers = Object.entries(this.#others).reduce((text, [from, to]) => text.replaceAll(from, to), commands);
    const script = ofOthers
      .replaceAll('http://localhost:4000', ingestUrl)
      .replaceAll('http://localhost:4001', services['query-api'].url)
      .replaceAll('npm run import --', importer);
    // The importer needs nothing of npm. It looks for the key in the folder that SLUICE_DATA_DIR names.
    const env = { ...inherited(), SLUICE_DATA_DIR: join(this.#folder, '.sluice') };
    const options = { cwd: this.#folder, env };
    return await promisify(execFile)('sh', ['-c', script], options).then(
      ({ stdout }) => stdout,
      (error: { stdout: string }) => error.stdout,
    );
  }
}

/** A pipeline, and a shell in a folder of its own. */
export interface DocPipeline extends AsyncDisposable {
  readonly pipeline: Pick<Pipeline, 'services' | 'get' | 'settled' | 'drained'>;
  readonly shell: DocShell;
  /** The key of the workspace that can be read without one. */
  readonly key: string;
}

/**
 * Takes a workspace of the shared pipeline for the commands of a document. As `npm start` has it for `local`, reading it needs
 * no key.
 */
export async function takeDocTenant(name: string): Promise<DocPipeline> {
  const tenant = await takeTenant(name);
  const query = await tenant.startAnother('query-api', { QUERY_ANONYMOUS_WORKSPACE: name });
  const pipeline = { ...tenant, services: { ...tenant.services, 'query-api': query } };
  return await openDocs(name, { pipeline, key: tenant.key, stop: () => query.kill9() });
}

/** What the pipeline of a document has of its own. */
export type DocPipelineOptions = Pick<PipelineOptions, 'clickhouseUrl' | 'database' | 'env'>;

/** Starts a pipeline for the commands of a document. As `npm start` has it, reading `local` needs no key. */
export async function startDocPipeline(name: string, options: DocPipelineOptions): Promise<DocPipeline> {
  const pipeline = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    ...options,
    name,
    env: { QUERY_ANONYMOUS_WORKSPACE: 'local', ...options.env },
  });
  return await openDocs(name, { pipeline, key: await pipeline.addKey('local'), stop: () => pipeline.stop() });
}

interface Opened extends Pick<DocPipeline, 'pipeline' | 'key'> {
  stop(): Promise<void>;
}

async function openDocs(name: string, { pipeline, key, stop }: Opened): Promise<DocPipeline> {
  await using started = new AsyncDisposableStack();
  started.defer(stop);
  const folder = await mkdtemp(join(tmpdir(), `sluice-${name}-`));
  started.defer(() => rm(folder, { recursive: true }));
  const shell = await DocShell.create(pipeline, folder, key);
  const stack = started.move();
  return { pipeline, shell, key, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** Output without what differs in every run: times of receipt (in Trench `parsedAt`), durations and the folder. */
export function withoutVariation(output: string): unknown {
  if (!output.trimStart().startsWith('{')) {
    return output
      .trim()
      .replaceAll(/ in [\d.]+ s \([\d,]+ events\/s\)/g, ' in a time')
      .replaceAll(/^\/.*\/([^/]+\.refused\.txt) /gm, 'FOLDER/$1 ');
  }
  return JSON.parse(output, (name, value: unknown) =>
    (name === 'receivedAt' || name === 'parsedAt') && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(String(value))
      ? 'a time'
      : value,
  );
}
