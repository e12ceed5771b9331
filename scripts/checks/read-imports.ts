import { join } from 'node:path';
import { cruise, type ICruiseResult } from 'dependency-cruiser';
import extractConfig from 'dependency-cruiser/config-utl/extract-depcruise-config';

/** Returns all files of the repository with what they import, and which rules of `.dependency-cruiser.mjs` they break. */
export async function readImports(root: string): Promise<ICruiseResult> {
  const { options, forbidden = [] } = await extractConfig(join(root, '.dependency-cruiser.mjs'));
  const { output } = await cruise(['services', 'packages', 'scripts', 'tests', 'bench'], {
    ...options,
    baseDir: root,
    ruleSet: { forbidden },
    validate: true,
  });
  return output as ICruiseResult;
}
