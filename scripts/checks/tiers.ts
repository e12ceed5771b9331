import { matchesGlob } from 'node:path';

/** A group of test files that are like each other in what they need, and in when they run. See tests/README.md. */
export interface Tier {
  readonly name: TierName;
  readonly include: readonly string[];
  readonly exclude?: readonly string[];
  /** The global set-ups that its files need, from the root of the repository. */
  readonly setup: readonly string[];
  /**
   * Whether each file has a process of its own. Otherwise a worker keeps its process and the modules for the next file, and
   * so what tests/kit starts lazily, such as a pipeline.
   */
  readonly isolate: boolean;
  /** What the sum of its files may take on two quiet cores with three workers, in seconds: a tenth more than measured. */
  readonly budgetSeconds: number;
}

export type TierName =
  | 'unit'
  | 'service'
  | 'simulation'
  | 'system'
  | 'slow'
  | 'documents'
  | 'clients'
  | 'faults'
  | 'night';

/** The commands of tests. */
export type TestCommand = 'test' | 'build' | 'night';

const BESIDE_CODE = '{services,packages,scripts,bench,tests/kit}/**';
const ENGINES = 'tests/kit/start-engines.ts';
const PROGRAMS = 'tests/kit/clients/install-all.ts';

/** In the order in which they start: the shortest files come last, and keep every core busy to the end. */
export const TIERS: readonly Tier[] = [
  {
    name: 'night',
    include: ['tests/night/**/*.test.ts', `${BESIDE_CODE}/*.night.test.ts`],
    setup: [PROGRAMS, ENGINES],
    isolate: true,
    budgetSeconds: 7_200,
  },
  {
    name: 'faults',
    include: ['tests/faults/**/*.test.ts'],
    setup: [ENGINES],
    isolate: true,
    budgetSeconds: 660,
  },
  {
    name: 'slow',
    include: [`${BESIDE_CODE}/*.slow.test.ts`],
    setup: [ENGINES],
    isolate: true,
    budgetSeconds: 425,
  },
  {
    name: 'clients',
    include: ['tests/clients/**/*.test.ts'],
    setup: [PROGRAMS, ENGINES],
    isolate: false,
    budgetSeconds: 480,
  },
  {
    name: 'documents',
    include: ['tests/docs/**/*.test.ts'],
    setup: [ENGINES],
    isolate: false,
    budgetSeconds: 105,
  },
  {
    name: 'system',
    include: ['tests/system/**/*.test.ts'],
    setup: [ENGINES],
    isolate: false,
    budgetSeconds: 115,
  },
  {
    name: 'simulation',
    include: ['tests/simulation/**/*.test.ts'],
    setup: [ENGINES],
    isolate: true,
    budgetSeconds: 140,
  },
  {
    name: 'service',
    include: [`${BESIDE_CODE}/*.service.test.ts`],
    setup: [ENGINES],
    isolate: true,
    budgetSeconds: 400,
  },
  {
    name: 'unit',
    include: [`${BESIDE_CODE}/*.test.ts`],
    exclude: ['**/*.{service,slow,night}.test.ts'],
    setup: [],
    isolate: true,
    budgetSeconds: 140,
  },
];

/** The tiers that each command runs. */
export const TIERS_OF: Readonly<Record<TestCommand, readonly TierName[]>> = {
  test: ['unit', 'service', 'simulation', 'system'],
  build: ['unit', 'service', 'simulation', 'system', 'slow', 'documents', 'clients', 'faults'],
  night: ['night'],
};

/** Returns the tier of a test file, by its path from the root of the repository. */
export function tierOf(file: string): Tier | undefined {
  const matches = (pattern: string) => matchesGlob(file, pattern);
  return TIERS.find(({ include, exclude = [] }) => include.some(matches) && !exclude.some(matches));
}
