import { killClickHouse } from './clickhouse.ts';
import { rebalance } from './kafka-group.ts';
import type { Rules } from './rules.ts';
import { FAULTS, type Fault } from './scenario.ts';
import { type Action, newWriter, stepOf, type World } from './world.ts';
import { commit } from './writer-batches.ts';
import { resume } from './writer-partitions.ts';
import { receiveResult } from './writer-statements.ts';

/** Returns the faults that are possible now, and that the scenario allows once more. */
export function faultActions(world: World, rules: Rules): Action[] {
  const { scenario } = rules;
  const actions: Action[] = [];
  function offer(fault: Fault, name: string, act: (world: World) => void): void {
    const kind = FAULTS.indexOf(fault);
    if (world.faultsLeft[kind] === 0) return;
    actions.push({
      name,
      act(other) {
        other.faultsLeft[kind] = (other.faultsLeft[kind] as number) - 1;
        act(other);
      },
    });
  }
  for (const [index, { process, waitsFor, batch, generation }] of world.writers.entries()) {
    offer('a writer is killed', `writer ${process} is killed`, (other) => {
      other.writers[index] = newWriter(process + scenario.writers, scenario.logs.length);
    });
    const statement = world.statements.find(({ id }) => id === waitsFor);
    if (statement) {
      offer('a response is lost', `writer ${process} gets no response to "${statement.step}"`, (other) => {
        const same = other.statements.find(({ id }) => id === waitsFor);
        if (same) receiveResult(other, rules, same, 'failed');
      });
    } else if (batch?.begun && stepOf(rules, batch) === 'commit' && generation === world.group.generation) {
      offer('the response to a commit is lost', `writer ${process} gets no response to its commit`, (other) => {
        const writer = other.writers[index];
        if (writer) commit(other, rules, writer, false);
      });
    }
  }
  for (const owners of scenario.assignments) {
    offer('partitions move', `partitions move to writers ${owners}`, (other) => rebalance(other, owners));
  }
  offer('ClickHouse is killed', 'ClickHouse is killed', (other) => killClickHouse(other, rules));
  offer('the group is forgotten', 'all writers are gone for a week, and the group is forgotten', (other) => {
    // No statement runs for that long.
    other.statements = [];
    other.writers = other.writers.map(({ process }) => newWriter(process + scenario.writers, scenario.logs.length));
    other.group = { ...other.group, generation: 1, members: other.writers.map(({ process }) => process) };
  });
  const { cut } = scenario;
  if (cut && world.cut === 'not yet') {
    offer('a log is cut off', `partition 0 is cut off at ${cut.keep}`, (other) => {
      other.logs[0] = (other.logs[0] ?? []).slice(0, cut.keep);
      other.cut = 'short';
    });
  }
  return actions;
}

/** Returns what the log and the operator can do now: the log that was cut off grows again, the operator resumes. */
export function surroundingActions(world: World, { scenario, rows, firstRegrown }: Rules): Action[] {
  const actions: Action[] = [];
  if (world.cut === 'short' && (!scenario.cut?.growsLate || world.alarmed[0] || world.positions[0])) {
    actions.push({
      name: 'partition 0 grows again',
      act(other) {
        for (let id = firstRegrown; id < rows.length; id += 1) other.logs[0]?.push(id);
        other.cut = 'grown';
      },
    });
  }
  const at = scenario.cut?.resumesAt ?? 0;
  if (at === 'never') return actions;
  for (const [partition, alarmed] of world.alarmed.entries()) {
    if (!alarmed || (world.logs[partition]?.length ?? 0) < at) continue;
    actions.push({
      name: `the operator resumes partition ${partition} at ${at}`,
      act: (other) => resume(other, partition, at),
    });
  }
  return actions;
}
