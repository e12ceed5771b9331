import { withAdmin } from '@sluice/shared/kafka/topics';
import type { Kafka } from 'kafkajs';

/** Returns whether Kafka counts the member to the group now. @throws kafkajs's errors */
export async function isMemberOf(kafka: Kafka, groupId: string, memberId: string): Promise<boolean> {
  const { groups } = await withAdmin(kafka, (admin) => admin.describeGroups([groupId]));
  return groups.some(({ members }) => members.some((member) => member.memberId === memberId));
}
