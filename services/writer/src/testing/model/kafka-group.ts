import type { World, Writer } from './world.ts';

/*
 * The consumer group in Kafka: who is a member, and which member owns which partition. A rebalance begins a new
 * generation; the writers find out when they next act.
 */

export function rebalance(world: World, owners: readonly number[]): void {
  world.group = { ...world.group, generation: world.group.generation + 1, owners };
}

export function admit(world: World, index: number): void {
  const { group, writers } = world;
  group.members = group.members.with(index, (writers[index] as Writer).process);
  rebalance(world, group.owners);
}
