import { execFile } from 'node:child_process';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { inherited } from '@sluice/shared/testing/inherited';
import { programFile } from '@sluice/shared/testing/program-file';
import { Helm } from '../../scripts/deploy/helm.ts';
import { configMapFile, type KubernetesObject, type PodSpec, podsOf } from '../../scripts/deploy/kubernetes-object.ts';
import type { CommandEnd } from './backups.ts';
import type { Pipeline } from './pipeline.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const MOUNT = '/etc/sluice';
/** What a command may write into. */
const WORK = '/work';

/** The jobs of the chart, run as Kubernetes would run them, except for the image. */
export class ChartJobs {
  readonly #helm: Helm;
  readonly #values: object;
  readonly #secrets: Readonly<Record<string, string>>;

  private constructor(helm: Helm, values: object, secrets: Readonly<Record<string, string>>) {
    this.#helm = helm;
    this.#values = values;
    this.#secrets = secrets;
  }

  /**
   * @param pipeline whose engines and accounts the values name
   * @param secrets the content of further secrets, by their names
   */
  static async of(
    { environment: env }: Pick<Pipeline, 'environment'>,
    secrets: Readonly<Record<string, string>> = {},
  ): Promise<ChartJobs> {
    const { CLICKHOUSE_PASSWORD = '', CLICKHOUSE_MIGRATE_PASSWORD = '' } = env;
    const values = {
      image: { repository: 'unused' },
      keys: { secret: 'unused' },
      kafka: {
        brokers: env['KAFKA_BROKERS']?.split(','),
        topicPrefix: env['KAFKA_TOPIC_PREFIX'],
        partitions: Number(env['KAFKA_PARTITIONS']),
      },
      clickhouse: {
        url: env['CLICKHOUSE_URL'],
        database: env['CLICKHOUSE_DATABASE'],
        writer: { user: env['CLICKHOUSE_USER'], passwordSecret: { name: 'writer' } },
        migrate: { user: env['CLICKHOUSE_MIGRATE_USER'], passwordSecret: { name: 'migrate' } },
      },
      writer: {
        stopped: true,
        env: {
          KAFKA_GROUP_ID: env['KAFKA_GROUP_ID'],
          KAFKA_SESSION_TIMEOUT_MS: env['KAFKA_SESSION_TIMEOUT_MS'],
        },
      },
    };
    const known = { writer: CLICKHOUSE_PASSWORD, migrate: CLICKHOUSE_MIGRATE_PASSWORD, ...secrets };
    return new ChartJobs(await Helm.install(join(ROOT, '.cache')), values, known);
  }

  /**
   * Renders the chart, and runs the command of a Job or CronJob with its environment and its files.
   *
   * @param component its label
   * @param values besides those of the pipeline
   */
  async run(component: string, values: object): Promise<CommandEnd> {
    await using folder = await makeTempDir();
    const files = await Promise.all(
      [this.#values, values].map(async (given, index) => {
        const file = join(folder.path, `values-${index}.yaml`);
        await writeFile(file, JSON.stringify(given));
        return file;
      }),
    );
    const objects = await this.#helm.render(
      join(ROOT, 'deploy', 'helm', 'sluice'),
      files.flatMap((file) => ['--values', file]),
    );
    const pods = podsOf(objects).find(({ labels }) => labels['app.kubernetes.io/component'] === component);
    if (!pods) throw new Error(`the chart has no job ${component}`);
    const mount = join(folder.path, 'etc');
    await this.#writeFiles(pods.spec, objects, mount);
    const [container] = pods.spec.containers;
    const env = Object.fromEntries(
      (container?.env ?? []).map(({ name, value }) => [name, value.replace(MOUNT, mount)] as const),
    );
    const work = join(folder.path, 'work');
    await mkdir(work);
    const command = (container?.command ?? []).map((part) => (part === WORK ? work : part));
    return await runCommand(command, env, folder.path);
  }

  async #writeFiles({ volumes }: PodSpec, objects: readonly KubernetesObject[], mount: string): Promise<void> {
    const sources = volumes.flatMap(({ projected }) => projected.sources);
    const files = sources.flatMap(({ secret, configMap }) => [
      ...(secret?.items ?? []).map(({ path }) => [path, this.#secrets[String(secret?.['name'])]] as const),
      ...(configMap?.items ?? []).map(
        ({ key, path }) => [path, configMap && configMapFile(objects, configMap.name, key)] as const,
      ),
    ]);
    for (const [path, content] of files) {
      if (content === undefined) throw new Error(`nobody says what is in ${path}`);
      await mkdir(dirname(join(mount, path)), { recursive: true });
      await writeFile(join(mount, path), content);
    }
  }
}

/** Runs a command with `sluice` on the PATH, as in the image, and nothing of the environment of the test. */
async function runCommand(
  command: readonly string[],
  env: Readonly<Record<string, string>>,
  folder: string,
): Promise<CommandEnd> {
  const bin = join(folder, 'bin');
  await mkdir(bin);
  const program = join(bin, 'sluice');
  await writeFile(program, `#!/bin/sh\nexec '${process.execPath}' '${programFile('sluice')}' "$@"\n`);
  await chmod(program, 0o755);
  const { PATH = '', ...others } = inherited();
  const [file = '', ...args] = command;
  return await new Promise((resolve) => {
    const options = { env: { ...others, ...env, PATH: [bin, PATH].join(delimiter) } };
    execFile(file, args, options, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, output: `${stdout}${stderr}` });
    });
  });
}
