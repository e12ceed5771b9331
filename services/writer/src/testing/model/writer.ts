import { admit, rebalance } from './kafka-group.ts';
import type { Rules } from './rules.ts';
import type { Action, World, Writer } from './world.ts';
import { begin, commit, deliver, fetch } from './writer-batches.ts';
import { halt, open, openAll } from './writer-partitions.ts';
import { sendNext } from './writer-statements.ts';

/* What each writer can do next: join the group, take over, fetch, begin a batch, commit, halt and open partitions. */

/** Returns the actions of all writers that are possible now. */
export function writerActions(world: World, rules: Rules): Action[] {
  return world.writers.flatMap((writer, index) => {
    const actor = `writer ${writer.process}`;
    return actionsOf(world, rules, writer, index).map(({ name, act }) => ({ name: `${actor} ${name}`, act, actor }));
  });
}

/** The actions look the writer up again, because they are applied to a copy of this world. */
function actionsOf(world: World, rules: Rules, writer: Writer, index: number): Action[] {
  const { group, logs } = world;
  const self = (other: World) => other.writers[index] as Writer;
  if (writer.generation !== group.generation) {
    return group.members[index] === writer.process
      ? [{ name: 'joins', act: (other) => join(other, rules, self(other)) }]
      : [{ name: 'requests to become a member', act: (other) => admit(other, index) }];
  }
  if (writer.waitsFor !== null) return [];
  if (writer.fenced) return [{ name: 'requests to join again', act: (other) => rebalance(other, group.owners) }];
  if (writer.taking === 'open partitions') {
    return [{ name: 'opens its partitions', act: (other) => openAll(other, rules, self(other)) }];
  }
  if (writer.taking !== 'done') return [];
  const { batch, fetches } = writer;
  if (batch?.begun) {
    return [{ name: 'commits', act: (other) => commit(other, rules, self(other), true) }];
  }
  const actions: Action[] = [];
  if (batch) actions.push({ name: 'begins to store', act: (other) => begin(other, rules, self(other)) });
  for (const [place, { partition, rows }] of fetches.entries()) {
    const name = `gets rows ${rows} of partition ${partition}`;
    actions.push({ name, act: (other) => deliver(other, rules, self(other), place) });
  }
  for (const partition of writer.open) {
    const next = writer.next[partition] ?? 0;
    const end = logs[partition]?.length ?? 0;
    if (next > end && !batch) {
      actions.push({ name: `halts ${partition}`, act: (other) => halt(other, rules.variant, self(other), partition) });
    }
    if (fetches.some((fetch) => fetch.partition === partition && fetch.generation === writer.generation)) continue;
    if (batch?.positions.some((position) => position.partition === partition)) continue;
    for (const size of new Set(rules.scenario.fetchSizes.map((size) => Math.min(size, end - next)))) {
      if (size <= 0) continue;
      const name = `fetches ${size} of partition ${partition}`;
      actions.push({ name, act: (other) => fetch(other, self(other), partition, size) });
    }
  }
  for (const partition of writer.assigned) {
    if (writer.open.includes(partition) || world.alarmed[partition]) continue;
    actions.push({ name: `opens ${partition} again`, act: (other) => open(other, rules, self(other), partition) });
  }
  return actions;
}

function join(world: World, rules: Rules, writer: Writer): void {
  const { generation, members, owners } = world.group;
  writer.generation = generation;
  writer.assigned = owners.flatMap((owner, partition) => (members[owner] === writer.process ? [partition] : []));
  writer.open = [];
  writer.taking = 'newest-epoch';
  writer.epoch = null;
  writer.fenced = false;
  writer.batch = null;
  writer.waitsFor = null;
  // In reality these responses still arrive, and their rows are ignored. Forgetting them now has the same effect.
  if (rules.variant.dropsStaleFetches) writer.fetches = [];
  sendNext(world, rules, writer);
}
