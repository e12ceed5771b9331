import type { ITopicConfig, Kafka } from 'kafkajs';
import { until } from '../../testing/until.ts';
import { withAdmin } from '../topics.ts';

/** Creates topics and waits for their leaders. kafkajs's own wait fails where a broker does not know a new topic yet. */
export async function createTopics(kafka: Kafka, topics: ITopicConfig[]): Promise<void> {
  await withAdmin(kafka, async (admin) => {
    await admin.createTopics({ topics, waitForLeaders: false });
    const areKnown = () =>
      admin.fetchTopicMetadata({ topics: topics.map(({ topic }) => topic) }).then(
        () => true,
        () => false,
      );
    await until('the leaders of new topics', areKnown);
  });
}
