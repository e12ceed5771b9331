import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { readSeconds } from './test-seconds.ts';
import { TIERS } from './tiers.ts';

/**
 * Starts the tiers in their order, and in each the files first that took longest: one that starts last would keep one core
 * busy and the others idle. A file that has not been measured yet comes before all others of its tier.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config;
    const seconds = await readSeconds(root);
    const secondsOf = ({ moduleId }: TestSpecification) => seconds[relative(root, moduleId)] ?? Number.MAX_VALUE;
    const tierOf = ({ project }: TestSpecification) => TIERS.findIndex(({ name }) => name === project.name);
    return (await super.sort(files)).sort(
      (one, other) => tierOf(one) - tierOf(other) || secondsOf(other) - secondsOf(one),
    );
  }
}
