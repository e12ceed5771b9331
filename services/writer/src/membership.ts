import { withAdmin } from '@sluice/shared/kafka/topics';
import type { Kafka } from 'kafkajs';

/** Whether Kafka has a member in a group now. @throws kafkajs's errors */
export async function isMemberOf(kafka: Kafka, groupId: string, memberId: string): Promise<boolean> {
  const { groups } = await withAdmin(kafka, (admin) => admin.describeGroups([groupId]));
  return groups.some(({ members }) => members.some((member) => member.memberId === memberId));
}
