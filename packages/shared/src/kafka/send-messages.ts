import type { Kafka, TopicMessages } from 'kafkajs';

/**
 * Sends messages of an operator's command at once, with a producer of their own.
 *
 * @param what names them in the error, as in "Kafka has not acknowledged WHAT"
 * @throws kafkajs's errors; {Error} when Kafka has not acknowledged all of them: then some of them may be there
 */
export async function sendMessages(kafka: Kafka, topicMessages: TopicMessages[], what: string): Promise<void> {
  const producer = kafka.producer({ allowAutoTopicCreation: false, idempotent: false });
  await producer.connect();
  try {
    const results = await producer.sendBatch({ acks: -1, topicMessages });
    // kafkajs may leave partitions out of its results.
    const sent = topicMessages.flatMap(({ topic, messages }) =>
      messages.map(({ partition }) => `${topic}/${partition}`),
    );
    const isComplete = results.length === new Set(sent).size && results.every(({ errorCode }) => errorCode === 0);
    if (!isComplete) throw new Error(`Kafka has not acknowledged ${what}`);
  } finally {
    await producer.disconnect();
  }
}
