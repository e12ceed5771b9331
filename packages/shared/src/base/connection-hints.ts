/** What a connection leads to, and the variables that say how it is made. */
interface ConnectionVariables {
  readonly peer: string;
  readonly address: string;
  /** What has to be set for TLS. */
  readonly tls: string;
  readonly ca: string;
  readonly cert: string;
  readonly credentials: string;
}

type Hint = readonly [pattern: RegExp, hint: (variables: ConnectionVariables) => string];

const KAFKA: ConnectionVariables = {
  peer: 'Kafka',
  address: 'KAFKA_BROKERS',
  tls: 'KAFKA_SSL',
  ca: 'KAFKA_SSL_CA_FILE',
  cert: 'KAFKA_SSL_CERT_FILE',
  credentials: 'KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD',
};

const CLICKHOUSE: ConnectionVariables = {
  peer: 'ClickHouse',
  address: 'CLICKHOUSE_URL',
  tls: 'CLICKHOUSE_URL',
  ca: 'CLICKHOUSE_CA_FILE',
  cert: 'CLICKHOUSE_CERT_FILE',
  credentials: 'CLICKHOUSE_USER or CLICKHOUSE_MIGRATE_USER, and its password or certificate',
};

/** Texts and codes of OpenSSL and Node.js. An alert is what the peer said of our side. */
const OF_TLS: readonly Hint[] = [
  [
    /alert certificate expired/i,
    ({ peer, cert }) => `${peer} refuses the client certificate as expired; check ${cert}`,
  ],
  [
    /alert unknown ca|alert certificate unknown/i,
    ({ peer, cert }) => `${peer} does not trust the client certificate; check ${cert}`,
  ],
  [
    /alert (bad certificate|certificate required)/i,
    ({ peer, cert }) => `${peer} asks for a client certificate that it trusts; check ${cert}`,
  ],
  [
    /alert protocol version|unsupported protocol/i,
    ({ peer }) => `${peer} speaks another version of TLS; 1.2 or 1.3 is needed`,
  ],
  [
    /alert handshake failure|no shared cipher/i,
    ({ peer, cert }) => `${peer} has no cipher in common, or asks for a client certificate; check ${cert}`,
  ],
  [
    /self-signed certificate|certificate signature failure|unable to (verify the first|get( local)? issuer) certificate/i,
    ({ peer, ca }) => `the certificate of ${peer} is signed by no known authority; check ${ca}`,
  ],
  [/certificate has expired/i, ({ peer }) => `the certificate of ${peer} has expired; renew it there`],
  [/certificate is not yet valid/i, ({ peer }) => `the certificate of ${peer} is not valid yet; check the clocks`],
  [
    /does not match certificate's altnames/i,
    ({ peer, address }) => `the certificate of ${peer} is for other host names; check ${address}`,
  ],
  [
    /wrong version number|packet length too long|before secure TLS connection was established/i,
    ({ peer, tls, address }) =>
      `${peer} seems not to speak TLS there; check ${[...new Set([tls, address])].join(' and ')}`,
  ],
];

const OF_KAFKA: readonly Hint[] = [
  ...OF_TLS,
  [
    /mechanism is not supported|does not support the requested SASL mechanism/,
    () => 'Kafka does not offer this mechanism there; check KAFKA_SASL_MECHANISM',
  ],
  [
    /the token server refuses the client/,
    () => 'the token server refuses the client; check KAFKA_SASL_USERNAME, KAFKA_SASL_PASSWORD and KAFKA_SASL_SCOPE',
  ],
  [
    /the token server (cannot be reached|gives no token)/,
    () => 'the token server gives no token; check KAFKA_SASL_TOKEN_URL, and whether it is up',
  ],
  [
    /AWS gives no credentials/,
    () =>
      'AWS gives no credentials; check the role of this machine or pod, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
  ],
  [
    /Kafka refuses the token/,
    () =>
      'Kafka refuses the token; check KAFKA_SASL_SCOPE, KAFKA_SASL_EXTENSIONS, and which issuer and audience the brokers expect; with aws-msk-iam, AWS_REGION and the policy of the role',
  ],
  [/SASL .* authentication failed/, ({ peer, credentials }) => `${peer} refuses the login; check ${credentials}`],
  [
    /Closed connection/,
    () => 'Kafka closes the connection; if it expects TLS or a login, check KAFKA_SSL and KAFKA_SASL_MECHANISM',
  ],
];

const OF_CLICKHOUSE: readonly Hint[] = [
  ...OF_TLS,
  [
    /AUTHENTICATION_FAILED|Authentication failed/,
    ({ peer, credentials }) => `${peer} refuses the login; check ${credentials}`,
  ],
  [
    /Parse Error: Expected HTTP|HTTP request was sent to HTTPS port/i,
    () => 'ClickHouse closes the connection; if it expects TLS, CLICKHOUSE_URL begins with https://',
  ],
];

/**
 * Returns which variables to check after a connection to Kafka or ClickHouse has failed; `undefined` where nobody can say.
 * An error that is not kafkajs's counts as one of ClickHouse.
 */
export function connectionHint(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const text = messagesOf(error).join('\n');
  return error.name.startsWith('KafkaJS') ? kafkaHint(text) : find(OF_CLICKHOUSE, CLICKHOUSE, text);
}

/** {@link connectionHint} for a message of kafkajs. */
export function kafkaHint(message: string): string | undefined {
  return find(OF_KAFKA, KAFKA, message);
}

function find(hints: readonly Hint[], variables: ConnectionVariables, text: string): string | undefined {
  return hints.find(([pattern]) => pattern.test(text))?.[1](variables);
}

/** Returns the message of an error and of its causes, of which kafkajs's last retry has one. */
function messagesOf(error: unknown): string[] {
  return error instanceof Error ? [error.message, ...messagesOf(error.cause)] : [];
}

/** Returns the message of an error, with a hint if there is one. */
export function withHint(message: string, hint: string | undefined): string {
  return hint === undefined ? message : `${message}: ${hint}`;
}
