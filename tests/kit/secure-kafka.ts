import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LocalKafka, LocalKafkaOptions } from '@sluice/local-stack/kafka';
import type { BrokerSettings } from '@sluice/local-stack/kafka-properties';
import type { Certificate } from '@sluice/shared/tls/testing/certificates';
import { ownKafka } from './engines.ts';

/** The one user of every mechanism. */
export interface Login {
  readonly user: string;
  readonly password: string;
}

/** Settings of a listener with this certificate. Brokers take certificate and key from one file. */
export async function keystore(folder: string, name: string, { cert, key }: Certificate): Promise<BrokerSettings> {
  const file = join(folder, `${name}-keystore.pem`);
  await writeFile(file, `${key}${cert}`, { mode: 0o600 });
  return { 'ssl.keystore.type': 'PEM', 'ssl.keystore.location': file };
}

/** Settings of a listener that asks clients for a certificate of this authority. */
export async function clientAuthority(folder: string, name: string, cert: string): Promise<BrokerSettings> {
  const file = join(folder, `${name}-truststore.pem`);
  await writeFile(file, cert);
  return { 'ssl.truststore.type': 'PEM', 'ssl.truststore.location': file, 'ssl.client.auth': 'required' };
}

/** Settings of a listener at which the user may log in by each mechanism. */
export function allMechanisms({ user, password }: Login): BrokerSettings {
  const scram = 'org.apache.kafka.common.security.scram.ScramLoginModule required;';
  const plain = `org.apache.kafka.common.security.plain.PlainLoginModule required user_${user}="${password}";`;
  return {
    'sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512',
    'plain.sasl.jaas.config': plain,
    'scram-sha-256.sasl.jaas.config': scram,
    'scram-sha-512.sasl.jaas.config': scram,
  };
}

/** Settings of a listener at which clients log in by tokens without a signature that have the scope `kafka`. */
export const TOKENS: BrokerSettings = {
  'sasl.enabled.mechanisms': 'OAUTHBEARER',
  'oauthbearer.sasl.jaas.config':
    'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker" unsecuredValidatorRequiredScope="kafka";',
  // A connection ends with its token, unless its client logs in again.
  'oauthbearer.connections.max.reauth.ms': 3_600_000,
};

/** Starts a Kafka at which the user may log in by SCRAM, with these listeners. */
export async function secureKafka(
  { user, password }: Login,
  listeners: NonNullable<LocalKafkaOptions['listeners']>,
): Promise<LocalKafka & AsyncDisposable> {
  const scramUsers = (['SCRAM-SHA-256', 'SCRAM-SHA-512'] as const).map((mechanism) => ({
    ...{ mechanism, password },
    name: user,
  }));
  return await ownKafka({ listeners, scramUsers });
}
