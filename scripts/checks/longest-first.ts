import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The slowest test files, the slowest first. A long file that starts last would keep one core busy and the other idle. */
export const SLOWEST_FILES: readonly string[] = [
  'tests/faults/three-brokers.test.ts',
  'tests/faults/outage.test.ts',
  'tests/faults/kafka-responses.test.ts',
  'tests/faults/chaos.test.ts',
  'tests/e2e/commits.test.ts',
  'tests/faults/rebalances.test.ts',
  'tests/faults/kill.test.ts',
  'tests/faults/log-cut-off.test.ts',
  'tests/faults/offsets.test.ts',
  'tests/faults/writer-killed.test.ts',
  'tests/faults/backlog.test.ts',
  'tests/faults/rolling.test.ts',
  'tests/faults/disk-full.test.ts',
  'tests/faults/kafka-away.test.ts',
  'tests/faults/unclear-responses.test.ts',
  'tests/faults/steps.test.ts',
  'tests/faults/hostile-input.test.ts',
  'packages/local-stack/src/kafka.test.ts',
];

/** Starts {@link SLOWEST_FILES} first, in their order. The others follow as vitest orders them: by their last duration. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const found = SLOWEST_FILES.findIndex((file) => moduleId.endsWith(`/${file}`));
      return found === -1 ? SLOWEST_FILES.length : found;
    };
    return (await super.sort(files)).sort((one, other) => rank(one) - rank(other));
  }
}
