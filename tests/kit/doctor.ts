import { createHash } from 'node:crypto';
import { runDoctor } from '@sluice/cli/doctor/doctor';
import { runCheck } from '@sluice/cli/servers/check-file';
import { readAccounts } from '@sluice/local-stack/clickhouse-accounts';
import { TEST_DATABASES } from '@sluice/shared/clickhouse/testing/test-accounts';
import { createTopics } from '@sluice/shared/kafka/testing/create-topics';
import { wantedTopics, withAdmin } from '@sluice/shared/kafka/topics';
import kafkajs, { type Kafka } from 'kafkajs';
import { expect } from 'vitest';

const { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } = kafkajs;

export type Environment = Readonly<Record<string, string>>;
type Services = Parameters<typeof runDoctor>[0];

/** Runs all checks, and returns what they found. */
export async function diagnose(services: Services, env: Environment) {
  const results = await runDoctor(services, env, new AbortController().signal, () => undefined);
  const ofState = (state: string) => results.filter((one) => one.state === state);
  return { results, wrong: ofState('wrong'), notes: ofState('note'), text: JSON.stringify(results) };
}

/**
 * Expects that nothing is wrong with ClickHouse for a writer and query-api, and that each of its checks could be tried.
 *
 * @param check the name of one of them
 * @param found a text in what it has found
 */
export async function expectClickHouse(env: Environment, check: string, found: string): Promise<void> {
  const { results } = await diagnose(['writer', 'query-api'], env);
  const ofClickHouse = results.filter(({ name }) => name.startsWith('clickhouse.'));
  expect(ofClickHouse.filter(({ state }) => state === 'wrong' || state === 'skipped')).toEqual([]);
  expect(ofClickHouse).toContainEqual(expect.objectContaining({ name: check, found: expect.stringContaining(found) }));
}

/** Expects that `sluice servers check` finds nothing wrong with the file of servers. */
export async function expectFileIsSound(env: Environment): Promise<void> {
  const lines: string[] = [];
  expect(await runCheck(env['CLICKHOUSE_SERVERS_FILE'] ?? '', env, (line) => lines.push(line)), lines.join()).toBe(0);
}

/** Creates the topics of Sluice with a prefix, as it does itself but for these settings of the topics of rows. */
export async function topicsWith(
  kafka: Kafka,
  prefix: string,
  { partitions = 2, settings = {} }: { readonly partitions?: number; readonly settings?: Environment } = {},
): Promise<Environment> {
  const env = { KAFKA_TOPIC_PREFIX: prefix, KAFKA_GROUP_ID: `${prefix}writer`, KAFKA_PARTITIONS: '2' };
  const config = { KAFKA_BROKERS: [], KAFKA_SSL: false, KAFKA_TOPIC_PREFIX: prefix, KAFKA_PARTITIONS: partitions };
  const [events, ...others] = wantedTopics(config);
  if (!events) throw new Error('no topics are wanted');
  const own = Object.entries(settings).map(([name, value]) => ({ name, value }));
  const kept = (events.configEntries ?? []).filter(({ name }) => !(name in settings));
  await createTopics(kafka, [{ ...events, configEntries: [...kept, ...own] }, ...others]);
  return env;
}

/** What an account of Kafka may be given. */
const KAFKA_RIGHTS = {
  Read: [AclResourceTypes.TOPIC, AclOperationTypes.READ],
  Write: [AclResourceTypes.TOPIC, AclOperationTypes.WRITE],
  Describe: [AclResourceTypes.TOPIC, AclOperationTypes.DESCRIBE],
  DescribeConfigs: [AclResourceTypes.TOPIC, AclOperationTypes.DESCRIBE_CONFIGS],
  Create: [AclResourceTypes.TOPIC, AclOperationTypes.CREATE],
  Group: [AclResourceTypes.GROUP, AclOperationTypes.READ],
} as const;

export type KafkaRight = keyof typeof KAFKA_RIGHTS;

/** Gives a user of Kafka all rights that the documents list, but for these. */
export async function allowAllBut(kafka: Kafka, user: string, without: readonly KafkaRight[]): Promise<void> {
  const given = Object.entries(KAFKA_RIGHTS).filter(([right]) => !without.includes(right as KafkaRight));
  const acl = given.map(([, [resourceType, operation]]) => ({
    ...{ resourceType, operation, principal: `User:${user}`, host: '*', resourceName: '*' },
    ...{ resourcePatternType: ResourcePatternTypes.LITERAL, permissionType: AclPermissionTypes.ALLOW },
  }));
  await withAdmin(kafka, (admin) => admin.createAcls({ acl }));
}

/** Returns a file of `users.d` with a writer's account that lacks rights, and one that may only read. */
export async function lackingAccounts(password: string, without: string): Promise<string> {
  const { accounts } = await readAccounts(TEST_DATABASES);
  const grants = accounts.get('sluice_writer')?.grants ?? [];
  const hash = createHash('sha256').update(password).digest('hex');
  const user = (name: string, profile: string, rights: readonly string[]) =>
    `<${name}><password_sha256_hex>${hash}</password_sha256_hex><networks><ip>::/0</ip></networks>
      <profile>${profile}</profile><quota>default</quota>
      <grants>${rights.map((grant) => `<query>${grant}</query>`).join('')}</grants></${name}>`;
  const lacking = grants.filter((grant) => grant !== without);
  if (lacking.length === grants.length) throw new Error(`sluice_writer has no ${without}`);
  return `<clickhouse>
    <profiles><reads_only><readonly>1</readonly></reads_only></profiles>
    <users>${user('lacking', 'default', lacking)}${user('reading', 'reads_only', grants)}</users>
  </clickhouse>`;
}

/**
 * Returns a file of `config.d` with clusters, by their names: each is shards of replicas, and each replica a host and perhaps the port of
 * its native protocol.
 */
export function clustersOf(clusters: Readonly<Record<string, readonly (readonly string[])[]>>): string {
  const replicaOf = (address: string) => {
    const [host, port = '9000'] = address.split(':');
    return `<replica><host>${host}</host><port>${port}</port></replica>`;
  };
  const shardOf = (replicas: readonly string[]) => `<shard>${replicas.map(replicaOf).join('')}</shard>`;
  const elements = Object.entries(clusters).map(
    ([name, shards]) => `<${name}>${shards.map(shardOf).join('')}</${name}>`,
  );
  return `<clickhouse><remote_servers>${elements.join('')}</remote_servers></clickhouse>`;
}
