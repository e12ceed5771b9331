import { randomUUID } from 'node:crypto';
import { HOW_TO_REPEAT, SEED } from '@sluice/shared/testing/fast-check';
import { expect, inject } from 'vitest';
import { Random } from '../world/random.ts';
import { realClickHouse, simulatedClickHouse, simulatedReplica } from './clickhouse-engines.ts';
import { Performer } from './perform.ts';
import { chooseOperation, describeOperation } from './random-operations.ts';

/**
 * Has the writer's code do the same random operations on the real and on the simulated ClickHouse, and expects that all
 * statements are answered in the same way and leave the same rows.
 *
 * @param areCarried whether the rows of a batch travel with each statement. Default: they are in a session
 */
export async function expectSameStatements(operations: number, areCarried = false): Promise<void> {
  await using real = await realClickHouse(inject('clickhouseUrl'));
  await using simulated = areCarried ? simulatedReplica(SEED) : simulatedClickHouse(SEED);
  if (areCarried) await real.recordReplica();
  const group = randomUUID();
  const [onReal, onSimulated] = [new Performer(real, group, areCarried), new Performer(simulated, group, areCarried)];
  const random = new Random(SEED, 'operations');
  const story: string[] = [];
  for (let number = 1; number <= operations; number += 1) {
    const operation = chooseOperation(random, onReal.opened);
    story.push(`${number}. ${describeOperation(operation)}`);
    const explanation = `${HOW_TO_REPEAT}, the last operations:\n${story.slice(-12).join('\n')}\n`;
    const answers = await onReal.perform(operation);
    expect(await onSimulated.perform(operation), explanation).toEqual(answers);
    expect(await simulated.rows(), explanation).toEqual(await real.rows());
  }
}
