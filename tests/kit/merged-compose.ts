import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { resolveVariables } from './compose-variables.ts';

const ROOT = join(import.meta.dirname, '..', '..');

export interface ComposeService {
  readonly image?: string;
  readonly build?: object;
  readonly profiles?: readonly string[];
  readonly pull_policy?: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, object>>;
  readonly healthcheck?: object;
}

export interface ComposeFile {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly volumes: object;
}

/** `docker-compose.yml` and a file that is given with it. */
export interface MergedCompose {
  readonly base: ComposeFile;
  readonly added: ComposeFile;
  /** A service of both files together, as Compose merges them: variables by name, volumes by where they are mounted. */
  service(name: string): ComposeService;
  /** The environment of a service on this machine, where its file of servers is the one that is mounted. */
  environmentOf(name: string): Record<string, string>;
}

export async function readMergedCompose(name: string): Promise<MergedCompose> {
  const [base, added] = await Promise.all(
    ['docker-compose.yml', name].map(async (file): Promise<ComposeFile> => {
      return parse(await readFile(join(ROOT, file), 'utf8'), { merge: true });
    }),
  );
  if (!base || !added) throw new Error('a compose file is empty');

  function service(of: string): ComposeService {
    const [one, other] = [base?.services[of], added?.services[of]];
    const environment = { ...one?.environment, ...other?.environment };
    const mounts = new Map(
      [...(one?.volumes ?? []), ...(other?.volumes ?? [])].map((text) => [text.split(':')[1], text]),
    );
    const depends_on = { ...one?.depends_on, ...other?.depends_on };
    return { ...one, ...other, environment, depends_on, volumes: [...mounts.values()] };
  }

  function environmentOf(of: string): Record<string, string> {
    const { environment, volumes = [] } = service(of);
    const path = environment['CLICKHOUSE_SERVERS_FILE'] ?? '';
    const mount = volumes
      .map((volume) => volume.split(':'))
      .find(([, target]) => target && path.startsWith(`${target}/`));
    const [source = '', target = ''] = mount ?? [];
    const resolved = Object.entries(environment).map(([key, value]) => [key, resolveVariables(value)]);
    const file = { CLICKHOUSE_SERVERS_FILE: path.replace(target, join(ROOT, source)) };
    return { HOST: '0.0.0.0', ...Object.fromEntries(resolved), ...file };
  }
  return { base, added, service, environmentOf };
}
