import kafkajs from 'kafkajs';

/**
 * Resolves when the broker at `address` (`host:port`) answers an admin request and knows `clusterSize` brokers. It tries
 * once, for about 3 s at most.
 *
 * @throws kafkajs's errors, or that brokers are missing
 */
export async function probeKafka(address: string, clusterSize: number): Promise<void> {
  const client = new kafkajs.Kafka({
    clientId: 'local-stack-probe',
    brokers: [address],
    logLevel: kafkajs.logLevel.NOTHING,
    connectionTimeout: 1000,
    requestTimeout: 3000,
    retry: { retries: 0 },
  });
  const admin = client.admin();
  try {
    await admin.connect();
    const { brokers } = await admin.describeCluster();
    if (brokers.length < clusterSize) throw new Error(`${brokers.length} of ${clusterSize} brokers have joined`);
  } finally {
    await admin.disconnect();
  }
}
