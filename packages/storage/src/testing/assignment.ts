import { Assignment } from '../protocol/assignment.ts';

/** Creates an assignment of partitions of the topic `t`, as kafkajs announces it to the group's only member. */
export function createTestAssignment(generation: number, partitions: readonly number[] = [0]): Assignment {
  return new Assignment({
    duration: 0,
    groupId: 'g',
    isLeader: true,
    leaderId: 'm',
    memberId: 'm',
    groupProtocol: 'p',
    generationId: generation,
    memberAssignment: { t: [...partitions] },
  });
}
