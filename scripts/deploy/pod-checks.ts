import { createHash } from 'node:crypto';
import { backupConfig } from '@sluice/cli/backup/config';
import { ConfigError, loadConfig } from '@sluice/shared/config';
import { areReplicas, serverDefaults, withServer } from '@sluice/shared/servers/server-config';
import { parseServersFile, ServersFileError } from '@sluice/shared/servers/servers-file';
import { z } from 'zod';
import { configSchema as ingestSchema } from '../../services/ingest-api/src/config.ts';
import { configSchema as querySchema } from '../../services/query-api/src/config.ts';
import { configSchema as trenchSchema } from '../../services/trench-api/src/config.ts';
import { configSchema as writerSchema } from '../../services/writer/src/config.ts';
import {
  type Container,
  configMapFile,
  type KubernetesObject,
  objectsOf,
  type PodSpec,
  podsOf,
} from './kubernetes-object.ts';

/** That of a writer, with what the commands for backups read besides. */
const withBackups = z.object({ ...writerSchema.shape, ...backupConfig.shape });

/** The environment that each service or command reads, by the name of its container. */
const SCHEMAS: Readonly<Record<string, z.ZodObject>> = {
  'ingest-api': ingestSchema,
  'query-api': querySchema,
  'trench-api': trenchSchema,
  writer: writerSchema,
  compare: writerSchema,
  backup: withBackups,
  restore: withBackups,
  audit: writerSchema,
  'grow-partitions': writerSchema,
  migrations: writerSchema,
};

/** What the image sets. */
const IMAGE_ENV = { HOST: '0.0.0.0', PORT: '8080' };

/** Variables of Node.js, which no service reads itself. */
const FOREIGN_VARIABLES = /^(NODE_|OTEL_)/;

/** An IANA service name, as Kubernetes wants it of a port. */
const PORT_NAME = /^(?=.*[a-z])[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?$/;

/** What the Pod Security Standard "restricted" demands, and a root file system that cannot be written. */
const POD_SECURITY = { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } };
const CONTAINER_SECURITY = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
};

/** Returns what is wrong with pods that their schema does not say: ports, volumes, environment, rights, time to stop. */
export function podErrors(objects: readonly KubernetesObject[]): readonly string[] {
  const pods = [
    ...podsOf(objects).map(({ title, spec }) => ({ title, pod: spec })),
    ...objectsOf(objects, 'Pod').map(({ name, spec }) => ({ title: `Pod ${name}`, pod: spec })),
  ];
  const ofPods = pods.flatMap(({ title, pod }) => {
    const containers = pod.containers.flatMap((container) => [
      ...portErrors(container),
      ...volumeErrors(container, pod),
      ...environmentErrors(container, serversFile(container, pod, objects)),
      ...stopErrors(container, pod),
    ]);
    const restart =
      title.startsWith('Deployment') || pod.restartPolicy === 'Never' ? [] : ['a Job restarts its pod itself'];
    return [...containers, ...rightsErrors(pod), ...restart].map((error) => `${title}: ${error}`);
  });
  return [...ofPods, ...restartErrors(objects)];
}

/** Writers ask all replicas of the file, which they read when they start: another file has to be another template of their pods. */
function restartErrors(objects: readonly KubernetesObject[]): string[] {
  return objectsOf(objects, 'Deployment').flatMap(({ name, spec: { template } }) => {
    const { metadata, spec } = template;
    const writer = spec.containers.find((container) => container.name === 'writer');
    const env = Object.fromEntries(writer?.env.map((variable) => [variable.name, variable.value]) ?? []);
    if (!writer || !areReplicas(env)) return [];
    const file = serversFile(writer, spec, objects) ?? '';
    const hash = createHash('sha256').update(file).digest('hex');
    if (Object.values(metadata.annotations).includes(hash)) return [];
    return [`Deployment ${name}: it does not start again when a replica is added or removed`];
  });
}

function portErrors({ ports, startupProbe, livenessProbe, readinessProbe }: Container): string[] {
  const probes = { startupProbe, livenessProbe, readinessProbe };
  const isKnown = (wanted: string | number) => ports.some((port) => [port.name, port.containerPort].includes(wanted));
  return [
    ...ports.filter(({ name }) => !PORT_NAME.test(name)).map(({ name }) => `"${name}" is no name of a port`),
    ...Object.entries(probes).flatMap(([name, probe]) =>
      probe && !isKnown(probe.httpGet.port)
        ? [`${name} asks the port ${probe.httpGet.port}, which does not exist`]
        : [],
    ),
  ];
}

function volumeErrors({ volumeMounts, env }: Container, { volumes }: PodSpec): string[] {
  const files = new Set(
    volumeMounts.flatMap(({ name, mountPath }) => {
      const sources = volumes.find((volume) => volume.name === name)?.projected.sources ?? [];
      return sources.flatMap(({ secret, configMap }) =>
        [...(secret?.items ?? []), ...(configMap?.items ?? [])].map(({ path }) => `${mountPath}/${path}`),
      );
    }),
  );
  const named = env.filter(({ name }) => name.endsWith('_FILE'));
  return [
    ...volumeMounts
      .filter(({ name }) => !volumes.some((volume) => volume.name === name))
      .map(({ name }) => `there is no volume ${name}`),
    ...volumeMounts.filter((mount) => 'subPath' in mount).map(({ name }) => `${name}: subPath keeps updates away`),
    ...named.filter(({ value }) => !files.has(value)).map(({ name, value }) => `${name}: ${value} is not mounted`),
    ...[...files]
      .filter((file) => !named.some(({ value }) => value === file))
      .map((file) => `${file} is mounted, and no variable names it`),
  ];
}

/** Returns the content of the file that CLICKHOUSE_SERVERS_FILE names; undefined when there is none. */
function serversFile(
  { env, volumeMounts }: Container,
  { volumes }: PodSpec,
  objects: readonly KubernetesObject[],
): string | undefined {
  const file = env.find(({ name }) => name === 'CLICKHOUSE_SERVERS_FILE')?.value;
  for (const { name, mountPath } of volumeMounts) {
    const sources = volumes.find((volume) => volume.name === name)?.projected.sources ?? [];
    for (const { configMap } of sources) {
      const item = configMap?.items.find(({ path }) => `${mountPath}/${path}` === file);
      if (configMap && item) return configMapFile(objects, configMap.name, item.key);
    }
  }
  return undefined;
}

function environmentErrors({ name, env }: Container, servers: string | undefined): string[] {
  const schema = SCHEMAS[name];
  if (!schema) return [];
  const own = env.filter((variable) => !FOREIGN_VARIABLES.test(variable.name));
  const unknown = own.filter((variable) => !(variable.name in schema.shape));
  const values = Object.fromEntries(own.map((variable) => [variable.name, variable.value]));
  const twice = env.filter((variable, index) => env.findIndex((other) => other.name === variable.name) < index);
  return [
    ...twice.map((variable) => `${name} has ${variable.name} twice`),
    ...unknown.map((variable) => `${name} does not know the variable ${variable.name}`),
    ...configErrors(schema, { ...IMAGE_ENV, ...values }, servers),
  ];
}

/** A file that is not on this machine. Whether it is mounted in the pod is checked by itself. */
const MOUNTED_FILE = /: \/etc\/sluice\/\S+ does not exist$/;

function configErrors(
  schema: z.ZodObject,
  env: Readonly<Record<string, string>>,
  servers: string | undefined,
): readonly string[] {
  try {
    loadConfig(schema, withServers(withSecrets(schema, env), servers));
    return [];
  } catch (error) {
    if (error instanceof ServersFileError) return error.errors.map((message) => `CLICKHOUSE_SERVERS_FILE: ${message}`);
    if (!(error instanceof ConfigError)) throw error;
    return error.errors.filter((message) => !MOUNTED_FILE.test(message));
  }
}

/** Returns the environment with a text in place of each file of a secret. */
function withSecrets({ shape }: z.ZodObject, env: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(env).map(([name, value]) => {
    const secret = name.replace(/_FILE$/, '');
    return secret !== name && secret in shape ? [secret, 'secret'] : [name, value];
  });
  return Object.fromEntries(entries);
}

/** Returns the environment with the address of the server that CLICKHOUSE_SERVER names; of query-api, with the first. */
function withServers(env: Readonly<Record<string, string>>, file: string | undefined): NodeJS.ProcessEnv {
  if (file === undefined) return env;
  const { CLICKHOUSE_SERVERS_FILE: _, CLICKHOUSE_SERVER: name, ...others } = env;
  const servers = parseServersFile(file, serverDefaults(env));
  const server = name === undefined ? servers[0] : servers.find((one) => one.name === name);
  return server ? withServer(others, server) : others;
}

function stopErrors({ env, lifecycle }: Container, { terminationGracePeriodSeconds }: PodSpec): string[] {
  const drain = env.find(({ name }) => name === 'SHUTDOWN_TIMEOUT_MS');
  if (!drain) return [];
  const needed = (lifecycle?.preStop.sleep.seconds ?? 0) + Number(drain.value) / 1_000;
  if (terminationGracePeriodSeconds > needed) return [];
  return [`it is killed after ${terminationGracePeriodSeconds} s, and may need ${needed} s to stop`];
}

function rightsErrors({ containers, securityContext, automountServiceAccountToken }: PodSpec): string[] {
  const errors = missingSettings(securityContext, POD_SECURITY).map((setting) => `securityContext needs ${setting}`);
  if (automountServiceAccountToken !== false) errors.push("it gets a token of Kubernetes' API");
  for (const { name, resources, securityContext: own } of containers) {
    errors.push(
      ...missingSettings(own, CONTAINER_SECURITY).map((setting) => `${name}: securityContext needs ${setting}`),
    );
    if (!resources?.limits['memory'] || !resources.requests['memory'] || !resources.requests['cpu']) {
      errors.push(`${name}: resources need requests, and a limit of memory`);
    }
  }
  return errors;
}

function missingSettings(given: object | undefined, wanted: Readonly<Record<string, unknown>>): string[] {
  const settings: Readonly<Record<string, unknown>> = { ...given };
  return Object.entries(wanted)
    .filter(([name, value]) => JSON.stringify(settings[name]) !== JSON.stringify(value))
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
}
