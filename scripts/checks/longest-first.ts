import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { readSeconds } from './test-seconds.ts';

/**
 * Starts the files first that took longest: one that starts last would keep one core busy and the other idle. A file that has not
 * been measured yet comes before all others.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config;
    const seconds = await readSeconds(root);
    const of = ({ moduleId }: TestSpecification) => seconds[relative(root, moduleId)] ?? Number.POSITIVE_INFINITY;
    return (await super.sort(files)).sort((one, other) => (of(one) === of(other) ? 0 : of(other) - of(one)));
  }
}
