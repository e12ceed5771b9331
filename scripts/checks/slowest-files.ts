import type { Reporter, TestModule } from 'vitest/node';

/** How many files are printed. */
const FILES = 10;

/** A vitest reporter that prints the slowest files of a run, their hooks included. */
export default class SlowestFiles implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const durations = modules.map((module) => ({ file: module.relativeModuleId, ms: module.diagnostic().duration }));
    console.log(`The slowest files:\n${describeSlowest(durations)}`);
  }
}

/** One line per file, the slowest first. */
export function describeSlowest(durations: readonly { readonly file: string; readonly ms: number }[]): string {
  return durations
    .toSorted((one, other) => other.ms - one.ms)
    .slice(0, FILES)
    .map(({ file, ms }) => `${(ms / 1_000).toFixed(1).padStart(7)} s  ${file}`)
    .join('\n');
}
