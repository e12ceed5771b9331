import kafkajs from 'kafkajs';

/** As many as those of the services. */
const PARTITIONS = 48;

export async function createTopic(brokers: readonly string[], topic: string): Promise<void> {
  const admin = new kafkajs.Kafka({ brokers: [...brokers], logLevel: kafkajs.logLevel.ERROR }).admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic, numPartitions: PARTITIONS }], waitForLeaders: true });
  await admin.disconnect();
}
