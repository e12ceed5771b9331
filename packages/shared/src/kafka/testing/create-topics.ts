import type { ITopicConfig, Kafka } from 'kafkajs';
import { until } from '../../testing/until.ts';
import { withAdmin } from '../topics.ts';

/**
 * Creates topics and waits until their leaders answer: the metadata may name one that does not know yet that it leads. kafkajs's own
 * wait fails where a broker does not know a new topic yet.
 */
export async function createTopics(kafka: Kafka, topics: ITopicConfig[]): Promise<void> {
  await withAdmin(kafka, async (admin) => {
    await admin.createTopics({ topics, waitForLeaders: false });
    const areLed = () =>
      Promise.all(topics.map(({ topic }) => admin.fetchTopicOffsets(topic))).then(
        () => true,
        () => false,
      );
    await until('the leaders of new topics', areLed);
  });
}
