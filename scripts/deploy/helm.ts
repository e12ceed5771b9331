import { execFile } from 'node:child_process';
import { access, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { type KubernetesObject, kubernetesObject } from './kubernetes-object.ts';

const VERSION = '4.3.1';
const RELEASE = 'check';
const OUTPUT_BYTES_MAX = 64 * 1_024 * 1_024;

const run = promisify(execFile);

/** Helm cannot be had, or refuses the chart or its values. The message is for the user. */
export class HelmError extends Error {
  override readonly name = 'HelmError';
}

/** The program helm, at a fixed version. */
export class Helm {
  readonly #program: string;

  private constructor(program: string) {
    this.#program = program;
  }

  /**
   * Builds helm from its sources with Go, into the cache folder, unless it is there. Takes some minutes.
   *
   * @throws {HelmError} without Go, or when the build fails
   */
  static async install(cacheFolder: string): Promise<Helm> {
    const folder = join(cacheFolder, `helm-${VERSION}`);
    const program = join(folder, 'helm');
    const isThere = await access(program).then(
      () => true,
      () => false,
    );
    if (isThere) return new Helm(program);
    await run('go', ['version']).catch((error) => {
      throw new HelmError('Helm is built with Go, and there is no go on the PATH. Install Go 1.26 or newer.', {
        cause: error,
      });
    });
    console.error(`Building helm ${VERSION} with Go (some four minutes of CPU time, once)`);
    await mkdir(folder, { recursive: true });
    const env = { ...process.env, GOBIN: folder };
    // Outside of any module of Go's, and where no setting of the repository's counts.
    const options = { cwd: folder, env, maxBuffer: OUTPUT_BYTES_MAX };
    await run('go', ['install', `helm.sh/helm/v4/cmd/helm@v${VERSION}`], options).catch((error) => {
      throw new HelmError(`Helm could not be built:\n${error.stderr}`, { cause: error });
    });
    return new Helm(program);
  }

  /** @throws {HelmError} with what is wrong */
  async lint(chart: string, valuesFile: string): Promise<void> {
    await this.#run(['lint', chart, '--strict', '--values', valuesFile]);
  }

  /** Renders the objects of the chart, its test among them. @throws {HelmError} */
  async render(chart: string, valuesArgs: readonly string[]): Promise<readonly KubernetesObject[]> {
    const output = await this.#run(['template', RELEASE, chart, '--namespace', 'sluice', ...valuesArgs]);
    const documents = parseAllDocuments(output).map((document) => document.toJS());
    return documents.filter((document) => document !== null).map((document) => kubernetesObject.parse(document));
  }

  async #run(args: readonly string[]): Promise<string> {
    const { stdout } = await run(this.#program, args, { maxBuffer: OUTPUT_BYTES_MAX }).catch((error) => {
      throw new HelmError(`helm ${args[0]} fails:\n${error.stdout}${error.stderr}`, { cause: error });
    });
    return stdout;
  }
}
